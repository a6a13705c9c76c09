package explore

// withLate adds a delayed command, keeping the list in order.
func withLate(l local, d late) local {
	for i := range l.late {
		if l.late[i].cmd == 0 {
			l.late[i] = d
			break
		}
	}
	return sortLate(l)
}

func sortLate(l local) local {
	less := func(a, b late) bool { // the empty ones last
		if a.cmd == 0 || b.cmd == 0 {
			return a.cmd != 0 && b.cmd == 0
		}
		if a.cmd != b.cmd {
			return a.cmd < b.cmd
		}
		return a.place < b.place
	}
	for i := 1; i < len(l.late); i++ {
		for j := i; j > 0 && less(l.late[j], l.late[j-1]); j-- {
			l.late[j], l.late[j-1] = l.late[j-1], l.late[j]
		}
	}
	return l
}

// arrive executes the index-th delayed command of a client.
func (k *kit) arrive(h, lid, ew uint32, index int32) variant {
	key := stepKey(h, lid, ew, lateMove+int(index))
	if v, ok := k.lateMemo.get(key); ok {
		return *v
	}
	l := k.locals[lid]
	d := l.late[index]
	at := k.vers[h].at[0]
	eff, err := k.exec(h, k.key(h, l, d.op, d.cmd-1))
	if err != nil {
		fail(err)
	}
	h2, sh, shiftID, me := k.land(h, eff.to, eff.inv, k.after(l, eff), k.travels(d))
	was := l
	l.slots = sh.apply(l.slots)
	l = k.named(l, was, me)
	l.late[index] = late{}
	l = sortLate(l)
	if at != eff.to && k.programs[l.who].roles[d.op].role.action == deduct {
		units := k.taken(k.programs[l.who].roles[d.op].role, at, eff.to)
		if d.op == l.op {
			l.taken += units
		} else {
			l.past[d.op].taken += units
		}
	}
	v := variant{h: h2, l: k.local(l), epoch: ew, shift: shiftID, messages: eff.messages, place: d.place}
	k.lateMemo.put(key, v)
	return v
}

// travels is the connection of a delayed statement, or of a delayed command of a
// session, which ends with it.
func (k *kit) travels(d late) []int {
	if st := k.world.step(d.cmd - 1); st.sql {
		return conns(d.op, []int{st.conn})
	}
	if conn := k.redisConnOf(d); conn != 0 {
		return []int{conn}
	}
	return nil
}

// vanish drops a delayed command that never arrives.
func (k *kit) vanish(h, lid uint32, index int) (uint32, uint32, int32) {
	l := k.locals[lid]
	h2, sh, id, _ := k.land(h, k.vers[h].at[0], identity(), k.client(l), k.travels(l.late[index]))
	l.slots = sh.apply(l.slots)
	l.late[index] = late{}
	return h2, k.local(sortLate(l)), id
}

// shifted is a local after the stores changed under it.
func (k *kit) shifted(lid uint32, id int32) uint32 {
	if id == 0 {
		return lid
	}
	key := localKey(lid, 0, int64(id))
	if v, ok := k.shiftMemo.get(key); ok {
		return *v
	}
	l := k.locals[lid]
	sh := &k.shifts[id]
	l.slots = sh.apply(l.slots)
	v := k.local(l)
	k.shiftMemo.put(key, v)
	return v
}

// told is a local after messages were published: it gets those of the channels
// it listens on at that moment, whether it runs or is stopped.
func (k *kit) told(lid uint32, messages int32, ew uint32) localResult {
	i := k.infos[lid]
	if len(i.channels) == 0 || i.finished {
		return localResult{lid, ew}
	}
	key := localKey(lid, ew, int64(messages))
	if v, ok := k.tellMemo.get(key); ok {
		return *v
	}
	l, ep := k.locals[lid], epochOf(ew)
	for _, m := range k.world.messageList(messages) {
		if int(l.op) == len(k.programs[l.who].calls) || !listens(k.role(l).node(l.node), m.Channel) {
			continue
		}
		next, n := k.follow(l, event{kind: told, text: joinArgs([]string{m.Channel, m.Payload})})
		l, ep = k.finish(next, n, ep)
	}
	v := localResult{k.local(l), ep.word()}
	k.tellMemo.put(key, v)
	return v
}

func listens(n *node, channel string) bool {
	for _, c := range n.channels {
		if c == channel {
			return true
		}
	}
	return false
}

// aged is a local after d milliseconds. Who has not arrived, or will never do
// anything any more, does not notice.
func (k *kit) aged(lid uint32, d int64, ew uint32) localResult {
	i := k.infos[lid]
	l := k.locals[lid]
	if i.finished || (l.status == live && !l.begun) {
		return localResult{lid, ew}
	}
	key := localKey(lid, ew, d)
	if v, ok := k.ageMemo.get(key); ok {
		return *v
	}
	ep := epochOf(ew)
	var n *node
	if !k.role(l).node(l.node).done { // a stopped client may have its answer already
		l, n = k.follow(l, event{kind: elapsed, advance: d})
	}
	if l.status == paused {
		l.status = rested
	}
	if n != nil {
		l, ep = k.finish(l, n, ep)
	}
	v := localResult{k.local(l), ep.word()}
	k.ageMemo.put(key, v)
	return v
}

// resumed is a stopped client that runs again.
func (k *kit) resumed(lid, ew uint32) localResult {
	l := k.locals[lid]
	l.status, l.place = live, 0
	l, ep := k.finish(l, k.role(l).node(l.node), epochOf(ew))
	return localResult{k.local(l), ep.word()}
}

// agedVersions lets d milliseconds pass on the servers, in every version.
func (k *kit) agedVersions(h uint32, d int64) agedVersions {
	key := localKey(h, 0, d)
	if v, ok := k.ageVerMemo.get(key); ok {
		return *v
	}
	v, sh := k.vers[h], stay()
	for i := range v.at {
		if i < int(v.n) || i == replicaAt && v.link.lags() {
			a := k.world.age(v.at[i], d)
			v.at[i], sh.inv[i] = a.to, a.inv
		}
	}
	r := agedVersions{k.version(v), k.shiftID(sh)}
	k.ageVerMemo.put(key, r)
	return r
}

// fallen is the store after it lost its last writes: j of them, its scripts, and
// what it knew of connections. A connection of which it knew something is broken
// then; the others are taken over.
func (k *kit) fallen(h uint32, j int) (uint32, int32) {
	v := k.vers[h]
	if k.mutant == lossKept {
		j = 0
	}
	sh := shift{}
	next := versions{track: v.track, n: v.n - uint8(j)} // its replica was synchronised with what it holds now
	sqlNow := k.world.moment(v.at[0]).sql
	for i := range sh.source {
		sh.source[i], sh.inv[i] = -1, identity()
		if i < int(next.n) {
			sh.source[i] = int8(i + j)
			next.at[i] = v.at[i+j]
		}
	}
	next.at[0], sh.inv[0] = k.world.change(next.at[0], func(m moment) moment {
		m.redis = m.redis.Restarted()
		m.sql = sqlNow
		return m
	})
	return k.version(next), k.shiftID(sh)
}

// untracked forgets what the store could fall back to, once no loss can come.
func (k *kit) untracked(h uint32) (uint32, int32) {
	v := k.vers[h]
	if !v.track {
		return h, 0
	}
	sh := stay()
	for i := 1; i < replicaAt; i++ {
		sh.source[i], v.at[i] = -1, 0
	}
	v.n, v.track = 1, false
	return k.version(v), k.shiftID(sh)
}
