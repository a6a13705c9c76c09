package explore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"stockproof/engines/redisstore"
	"stockproof/faults"
)

// sessionBelief is what a client's side of a connection takes the server to know
// of it. WATCH and MULTI open a session, EXEC and DISCARD end it, and so does
// UNWATCH outside of a transaction.
type sessionBelief struct {
	bound bool // it ever had a session: its commands say which connection they are on
	open  bool
	multi bool
}

// sent notes a command and writes into its step what it depends on.
func (b *sessionBelief) sent(st *step, id int, args []string) {
	if b.bound = b.bound || redisstore.NeedsSession(args); !b.bound {
		return
	}
	st.on, st.holds = id+1, b.open
	switch strings.ToUpper(args[0]) {
	case "WATCH":
		b.open = true
	case "MULTI":
		b.open, b.multi = true, true
	case "EXEC", "DISCARD":
		if b.multi {
			b.open, b.multi = false, false
		}
	case "UNWATCH":
		b.open = b.open && b.multi
	}
}

// Redis connections of an operation stand beside the database's in lists of what
// ends, as negative numbers.
const everyRedisConn = -1 << 30

func redisConn(op uint8, on int) int { return -(int(op)*connsPerOp + on) }

// sessionName is how the server of a moment knows a connection.
func sessionName(client string, op int8, on int) string {
	return fmt.Sprintf("%s#%d", client, -redisConn(uint8(op), on))
}

// sessionOf takes a sessionName apart.
func sessionOf(name string) (client string, conn int) {
	client, number, _ := strings.Cut(name, "#")
	n, _ := strconv.Atoi(number)
	return client, -n
}

// storeName is how a moment names a client that acts.
func (w *world) storeName(slot int8, me int) string {
	switch {
	case slot == observer:
		return prober
	case w.symmetry:
		return slotToken(me)
	}
	return clientPrefix + faults.ClientName(me)
}

// withoutConnections is a state after connections of a client ended, and whether
// the server knew anything of them.
func withoutConnections(s redisstore.State, client string, conns []int) (redisstore.State, bool) {
	ends := func(name string) bool {
		who, conn := sessionOf(name)
		return who == client && (slices.Contains(conns, everyRedisConn) || slices.Contains(conns, conn))
	}
	if !slices.ContainsFunc(s.Sessions, func(c redisstore.Session) bool { return ends(c.Name) }) {
		return s, false
	}
	return s.WithoutSessions(ends), true
}

// untouched is a state in which nobody has noticed a change to a watched key.
func untouched(s redisstore.State) redisstore.State {
	s.Sessions = slices.Clone(s.Sessions)
	for i := range s.Sessions {
		s.Sessions[i].Dirty = false
	}
	return s
}

// holdsSession refuses schemes that answer and leave a connection behind that
// watches or is in a transaction: the next operation would meet it. What a
// delayed command still travels on is no such connection.
func (k *kit) holdsSession(h uint32, l local, me int, keep int) {
	sessions := k.world.moment(k.vers[h].at[0]).redis.Sessions
	if len(sessions) == 0 || me < 0 {
		return
	}
	mine := k.world.storeName(anybody, me)
	for _, c := range sessions {
		who, conn := sessionOf(c.Name)
		travels := slices.ContainsFunc(l.late[:], func(d late) bool {
			return d.cmd != 0 && k.redisConnOf(d) == conn
		})
		if who == mine && -conn > int(l.op)*connsPerOp && conn != keep && !travels {
			fail(fmt.Errorf("%w: %s leaves a connection watching or in a transaction when it answers", ErrScheme, k.cfg.Entry.Scheme.Name()))
		}
	}
}

// redisConnOf is the connection with a session that a delayed command goes over,
// 0 for none.
func (k *kit) redisConnOf(d late) int {
	if st := k.world.step(d.cmd - 1); st.on > 0 {
		return redisConn(d.op, st.on)
	}
	return 0
}
