package explore

import (
	"fmt"
	"strings"

	"stockproof/engines/sqlsubset"
)

// away are database sessions of a client that hold no row: the database does
// not have to know whose they are until they do something. Without that, every
// buyer between BEGIN and the row it waits for would be one the stores name.
type away struct {
	conn int // of the client, over all its operations
	d    sqlsubset.Detached
}

// stand is a client with the stores it acts in, and what the change to them
// means for everybody else.
type stand struct {
	h, l  uint32
	shift int32
}

// names are the words by which a detached session goes, and a client in a slot.
func names(slot, conn int, back bool) *strings.Replacer {
	name := slotToken(slot)
	request := fmt.Sprintf("%s.%d", name, conn/connsPerOp+1)
	if back {
		return strings.NewReplacer(ownRequest, request, self, name)
	}
	return strings.NewReplacer(request, ownRequest, name, self)
}

// attach gives a client's sessions back to the database.
func (s *anySystem) attach(h, lid uint32) stand {
	l := s.locals[lid]
	if l.away == 0 {
		return stand{h: h, l: lid}
	}
	key := stand{h: h, l: lid}
	if r, ok := s.attached[key]; ok {
		return r
	}
	at := s.vers[h].at[0]
	me := int(l.slots[0])
	if me < 0 {
		if me = s.world.moment(at).slots; me >= maxSlots-1 {
			fail(fmt.Errorf("%w: %w", ErrScheme, errTooManyNames))
		}
	}
	to, inv := s.world.change(at, func(m moment) moment {
		db := m.sql.db.Clone()
		for _, a := range s.aways[l.away] {
			db.Attach(session(me, a.conn), a.d.MapText(names(me, a.conn, true).Replace))
		}
		m.sql = sqlState{db}
		return m
	})
	h2, sh, id := s.forward(h, to, inv)
	was := l
	l.away, l.slots = 0, sh.apply(l.slots)
	l = s.named(l, was, int(inv[me]))
	r := stand{h2, s.local(l), id}
	s.attached[key] = r
	return r
}

// detach takes a client's sessions that hold no row out of the database.
func (s *anySystem) detach(h, lid uint32) stand {
	l := s.locals[lid]
	at := s.vers[h].at[0]
	if m := s.world.moment(at); l.slots[0] < 0 || m.sql.db == nil || l.away != 0 {
		return stand{h: h, l: lid}
	}
	key := stand{h: h, l: lid}
	if r, ok := s.detached[key]; ok {
		return r
	}
	var list []away
	text := ""
	me := int(l.slots[0])
	to, inv := s.world.change(at, func(m moment) moment {
		db := m.sql.db.Clone()
		for _, n := range m.sql.sessions() {
			if n/maxConns != me {
				continue
			}
			if d, ok := db.Detach(n); ok {
				conn := n % maxConns
				a := away{conn, d.MapText(names(me, conn, false).Replace)}
				list = append(list, a)
				text += fmt.Sprintf("%d %q\n", conn, a.d.Key())
			}
		}
		m.sql = sqlState{db}
		return m
	})
	r := key
	if len(list) > 0 {
		id, ok := s.awayIDs[text]
		if !ok {
			id = int32(len(s.aways))
			s.aways = append(s.aways, list)
			s.awayIDs[text] = id
		}
		h2, sh, shiftID := s.forward(h, to, inv)
		l.away, l.slots = id, sh.apply(l.slots)
		r = stand{h2, s.local(l), shiftID}
	}
	s.detached[key] = r
	return r
}
