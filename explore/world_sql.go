package explore

import (
	"fmt"
	"slices"
	"strings"

	"stockproof/faults"
)

// newlyClosed lists what is in now and not in before, both sorted.
func newlyClosed(before, now []int) []int {
	if len(before) == len(now) {
		return nil
	}
	var fresh []int
	for _, c := range now {
		if !slices.Contains(before, c) {
			fresh = append(fresh, c)
		}
	}
	return fresh
}

// hangUp ends database sessions of a client, by its number in the database.
func (w *world) hangUp(at int32, client int, conns []int) (int32, [maxSlots]int8) {
	if len(conns) == 0 || client < 0 {
		return at, identity()
	}
	var sessions []int
	for _, c := range conns {
		if c >= 0 {
			sessions = append(sessions, session(client, c))
		}
	}
	name := w.storeName(anybody, client)
	if w.mutant == sessionLeft {
		conns = sessions
	}
	if _, known := withoutConnections(w.moment(at).redis, name, conns); !known && len(sessions) == 0 {
		return at, identity()
	}
	return w.change(at, func(m moment) moment {
		if len(sessions) > 0 {
			m.sql = m.sql.abandon(sessions)
		}
		m.redis, _ = withoutConnections(m.redis, name, conns)
		return m
	})
}

type grantKey struct {
	at      int32
	session int
	kill    bool
	named   execKey // by what names its client goes
}

// grant lets the blocked statement of a session go on.
func (w *world) grant(at int32, session int, kill bool, who execKey) (effect, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := grantKey{at, session, kill, who}
	if e, ok := w.grants[k]; ok {
		return e, nil
	}
	m := w.moments[at]
	var e effect
	var err error
	if m.sql, e.reply, e.blocked, err = m.sql.grant(session, kill); err != nil {
		return effect{}, err
	}
	if !w.named && who.slot >= 0 {
		name := clientPrefix + faults.ClientName(int(who.slot))
		if w.symmetry {
			name = slotToken(int(who.slot))
		}
		e.reply = strings.NewReplacer(fmt.Sprintf("%s.%d", name, who.op+1), ownRequest, name, self).Replace(e.reply)
	}
	e.inv = identity()
	e.slot = -1
	if w.symmetry {
		if m, e.inv = w.canonical(m); who.slot >= 0 {
			e.slot = e.inv[who.slot]
		}
	}
	e.to = w.intern(m)
	w.grants[k] = e
	return e, nil
}

// queue lists the sessions whose blocked statement could go on, and those the
// server could cancel because they wait for each other.
func (w *world) queue(at int32) (runnable, deadlocked []int, waiting int) {
	m := w.moment(at)
	if m.sql.db == nil {
		return nil, nil, 0
	}
	for _, cycle := range m.sql.db.Deadlocked() {
		deadlocked = append(deadlocked, cycle...)
	}
	return m.sql.db.Runnable(), deadlocked, len(m.sql.db.Waiting())
}
