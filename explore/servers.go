package explore

import (
	"slices"
	"strings"

	"stockproof/engines/redisstore"
	"stockproof/faults"
	"stockproof/schemes"
)

// blow is one way in which a server can be hit, in some versions of the stores,
// that is a change of state and nothing else.
type blow struct {
	step   WitnessStep // its line
	h      uint32
	shift  int32
	cost   uint8 // faults of the budget
	place  int16 // of the fault that it is, -1
	fired  int16 // of the fault that makes its difference by it, -1
	during bool  // it makes no difference once everybody is done
}

// link is the state of the replication from Redis to its replica.
type link uint8

const (
	whole   link = iota // the replica has every write
	behind              // it has none since the link broke
	refused             // and the primary has noticed: it refuses writes
	alone               // the replica is the primary, and has none of its own
)

// lags says that there is a replica that lacks writes.
func (l link) lags() bool { return l == behind || l == refused }

// placesOf are the settings under which a kind is placed; none when it is not.
func (c *Config) placesOf(kind faults.Kind) []faults.Setting {
	if c.MaxFaults == 0 || !slices.Contains(c.Faults, kind) {
		return nil
	}
	all := kind.Settings()
	named := slices.DeleteFunc(slices.Clone(all), func(s faults.Setting) bool { return !slices.Contains(c.Settings, s) })
	switch {
	case len(named) > 0:
		return named
	case kind == faults.RedisFailover:
		return []faults.Setting{faults.Async} // the others change what is run
	}
	return all
}

// tracks says whether an earlier moment of a store may come back.
func (c *Config) tracks() (redis, sql bool) {
	redis = len(c.placesOf(faults.StoreLoses)) > 0 || slices.Contains(c.placesOf(faults.RedisRestart), faults.AOFEverySec)
	return redis && c.Entry.Stores.Redis, c.Entry.Stores.SQL && slices.Contains(c.placesOf(faults.PostgresRestart), faults.SyncCommitOff)
}

// blows lists what can hit the servers.
func (k *kit) blows(h uint32) []blow {
	if !k.struck {
		return nil
	}
	if list := k.verInfos[h].blows; list != nil {
		return list
	}
	list := k.listBlows(h)
	k.verInfos[h].blows = list
	return list
}

func (k *kit) listBlows(h uint32) []blow {
	list := []blow{}
	v := k.vers[h]
	if !k.cfg.Entry.Stores.Redis || v.frozen {
		return k.thaws(list, h)
	}
	now := k.world.moment(v.at[0])
	add := func(b blow, key string, n int) {
		b.step.Fault, b.cost = faultOf(b.step), 1
		b.place = k.place(placement{kind: b.step.Fault, n: n, key: key})
		b.fired = b.place
		list = append(list, b)
	}
	if k.loses > 0 {
		lost := 0
		for j := 1; j < int(v.n); j++ {
			if k.world.moment(v.at[j]).redisID == k.world.moment(v.at[j-1]).redisID {
				continue // it was the database that changed
			}
			lost++
			to, sh := k.fallen(h, j)
			if k.allowed[faults.StoreLoses] {
				add(blow{step: WitnessStep{Kind: StepLoses, Lost: lost}, h: to, shift: sh}, "", lost)
			}
			if slices.Contains(k.restarts, faults.AOFEverySec) {
				add(blow{step: WitnessStep{Kind: StepRestarts, Server: "redis", Setting: faults.AOFEverySec, Lost: lost}, h: to, shift: sh}, string(faults.AOFEverySec), lost)
			}
		}
	}
	if k.allowed[faults.ScriptFlush] && len(now.redis.Scripts) > 0 {
		to, sh := k.changed(h, redisstore.State.WithoutScripts)
		add(blow{step: WitnessStep{Kind: StepFlush}, h: to, shift: sh, during: true}, "", 0)
	}
	for _, setting := range k.restarts {
		kept := redisstore.State{Keys: now.redis.Keys}
		switch setting {
		case faults.AOFEverySec:
			continue
		case faults.NoPersistence:
			kept = redisstore.State{}
		case faults.Snapshot:
			kept = redisstore.State{Keys: k.loaded.Keys}
		}
		if k.mutant == restartKept {
			kept = redisstore.State{Keys: now.redis.Keys}
		}
		if setting != faults.AOFAlways && kept.Data() == now.redis.Data() {
			continue // nothing to lose
		}
		to, sh := k.changed(h, func(redisstore.State) redisstore.State { return kept })
		add(blow{step: WitnessStep{Kind: StepRestarts, Server: "redis", Setting: setting}, h: to, shift: sh, during: setting == faults.AOFAlways}, string(setting), 0)
	}
	if k.allowed[faults.KeyEvicted] {
		for _, key := range now.redis.Keys {
			to, sh := k.changed(h, minus(key.Name))
			if k.mutant == evictionForgotten {
				to, sh = k.changed(h, minus())
			}
			add(blow{step: WitnessStep{Kind: StepEvicts, Key: key.Name}, h: to, shift: sh}, key.Name, 0)
		}
	}
	if loaded := k.loadedIn(now.redis); k.allowed[faults.KeyExpired] && len(loaded) > 0 {
		to, sh := k.changed(h, minus(loaded...))
		if k.mutant == expiryOfAll {
			to, sh = k.changed(h, func(s redisstore.State) redisstore.State { return redisstore.State{Scripts: s.Scripts} })
		}
		add(blow{step: WitnessStep{Kind: StepExpires}, h: to, shift: sh}, "", 0)
	}
	if k.allowed[faults.RedisFreeze] {
		v.frozen = true
		list = append(list, blow{step: WitnessStep{Kind: StepFreezes, Fault: faults.RedisFreeze}, h: k.version(v), cost: 1, place: -1, fired: -1, during: true})
	}
	if k.allowed[faults.RedisFailover] {
		list = k.failovers(list, h)
	}
	return list
}

// thaws is the end of a freeze, which is all that can happen to Redis meanwhile.
func (k *kit) thaws(list []blow, h uint32) []blow {
	v := k.vers[h]
	if !v.frozen {
		return list
	}
	v.frozen = false
	return append(list, blow{step: WitnessStep{Kind: StepThaws}, h: k.version(v), place: -1, fired: -1})
}

// failovers are the stages of a failover: the link to the replica breaks, the
// primary may notice, the replica takes over. When the link breaks the replica
// has every write until then, which is what WAIT acknowledges; so how far it is
// behind is decided by how much happens in between. The new primary has no
// replica, so WAIT answers 0 from then on, and it does not insist on one. The
// fault has fired when writes were lost.
func (k *kit) failovers(list []blow, h uint32) []blow {
	v := k.vers[h]
	place := k.place(placement{kind: faults.RedisFailover})
	if v.link == alone {
		return list
	}
	if v.link == whole {
		next, sh := v, stay()
		next.link, next.at[replicaAt] = behind, v.at[0]
		sh.source[replicaAt] = 0
		return append(list, blow{step: WitnessStep{Kind: StepFallsBehind, Fault: faults.RedisFailover}, h: k.version(next), shift: k.shiftID(sh),
			cost: 1, place: place, fired: -1, during: true})
	}
	if v.link == behind && k.noticing {
		next := v
		next.link = refused
		list = append(list, blow{step: WitnessStep{Kind: StepRefuses}, h: k.version(next), place: -1, fired: -1, during: true})
	}
	now, replica := k.world.moment(v.at[0]), k.world.moment(v.at[replicaAt])
	next, sh := versions{track: v.track, n: 1, link: alone}, stay()
	for i := range sh.source {
		sh.source[i] = -1
	}
	sh.source[0] = replicaAt
	from := replica.redis
	if k.mutant == replicaCaughtUp {
		from, sh.source[0] = now.redis, 0
	}
	next.at[0], sh.inv[0] = k.world.change(v.at[0], func(m moment) moment {
		m.redis, m.slots = from.Restarted(), replica.slots
		return m
	})
	b := blow{step: WitnessStep{Kind: StepTakesOver, Lost: int(v.lag)}, h: k.version(next), shift: k.shiftID(sh), place: -1, fired: -1}
	if from.Data() != now.redis.Data() {
		b.fired = place
	}
	return append(list, b)
}

// loadedIn are the keys that loading the article made and that are still there.
func (k *kit) loadedIn(s redisstore.State) (names []string) {
	for _, key := range k.loaded.Keys {
		if _, ok := s.Lookup(key.Name); ok {
			names = append(names, key.Name)
		}
	}
	return names
}

// minus takes keys away.
func minus(names ...string) func(redisstore.State) redisstore.State {
	return func(s redisstore.State) redisstore.State { return s.Without(names...) }
}

// changed is the stores after Redis became something else by itself. What may
// come back of earlier moments stays.
func (k *kit) changed(h uint32, f func(redisstore.State) redisstore.State) (uint32, int32) {
	v, sh := k.vers[h], stay()
	v.at[0], sh.inv[0] = k.world.change(v.at[0], func(m moment) moment {
		m.redis = f(m.redis)
		return m
	})
	return k.version(v), k.shiftID(sh)
}

// exec is what a command of a client does in versions of the stores. WAIT is
// answered by the state of the replication and changes nothing: the number of
// replicas that have every write of the connection.
func (k *kit) exec(h uint32, q execKey) (effect, error) { return k.execAt(&k.vers[h], q) }

// execAt reads nothing of the kit that a search changes.
func (k *kit) execAt(v *versions, q execKey) (effect, error) {
	wait := k.waits(q.cmd)
	if v.link == whole && !wait {
		return k.world.exec(q)
	}
	unchanged := effect{to: v.at[0], inv: identity(), slot: -1}
	if q.slot >= 0 {
		unchanged.slot = q.slot
	}
	if wait {
		if unchanged.reply = ":1\r\n"; v.link != whole && k.mutant != waitBlind {
			unchanged.reply = ":0\r\n"
		}
		return unchanged, nil
	}
	eff, err := k.world.exec(q)
	if err != nil || v.link != refused || k.world.step(q.cmd).sql {
		return eff, err
	}
	if sameKeys(k.world.moment(v.at[0]).redis, k.world.moment(eff.to).redis) {
		return eff, nil
	}
	unchanged.reply = noReplicas
	return unchanged, nil
}

// noReplicas is what a primary answers a write when min-replicas-to-write is not
// met. A command that changes nothing counts as none that writes.
const noReplicas = "-NOREPLICAS Not enough good replicas to write.\r\n"

func sameKeys(a, b redisstore.State) bool {
	return a.Data() == b.Data()
}

// waits says whether a step is WAIT.
func (k *kit) waits(cmd int32) bool { return isWait(k.world.step(cmd)) }

func isWait(s step) bool {
	const wait = "4:wait" // see joinArgs
	return !s.sql && len(s.args) >= len(wait) && strings.EqualFold(s.args[:len(wait)], wait)
}

// faultOf is the kind of fault that a line is.
func faultOf(s WitnessStep) faults.Kind {
	line := s.line()
	return line.FaultKind()
}

// noLease refuses what a snapshot would have to age: keys that were loaded with a
// time to live.
func noLease(loaded redisstore.State, entry schemes.Entry) error {
	for _, key := range loaded.Keys {
		if key.TTL > 0 {
			return errLoadedLease(entry.Scheme.Name(), key.Name)
		}
	}
	return nil
}
