package explore

import (
	"fmt"
	"slices"

	"stockproof/engines/redisstore"
	"stockproof/faults"
	"stockproof/faults/schedule"
)

// befalls makes happen what befalls a server; known is false for another line.
func (r *replayer) befalls(st *schedule.Step, diverged func(string, string) error) (known bool, err error) {
	keep := func(f func(redisstore.State) redisstore.State) { r.now.redis = f(r.now.redis) }
	switch st.Kind {
	case schedule.Loses:
		return true, r.loseWrites(st.Lost, diverged)
	case schedule.Flush:
		keep(redisstore.State.WithoutScripts)
	case schedule.Restarts:
		if st.Server == schedule.SQL {
			return true, r.restartDatabase(st, diverged)
		}
		switch st.Setting {
		case faults.AOFEverySec:
			return true, r.loseWrites(st.Lost, diverged)
		case faults.NoPersistence:
			r.now.redis = redisstore.State{}
		case faults.Snapshot:
			if err := noLease(r.loaded, r.entry); err != nil {
				return true, err
			}
			r.now.redis = r.loaded.Restarted()
		case faults.AOFAlways:
			keep(redisstore.State.Restarted)
		default:
			return true, diverged("a setting that exists", string(st.Setting))
		}
	case schedule.Evicts:
		if _, ok := r.now.redis.Lookup(st.Key); !ok {
			return true, diverged("a key "+st.Key, "none")
		}
		keep(minus(st.Key))
	case schedule.Expires:
		var there []string
		for _, key := range r.loaded.Keys {
			if _, ok := r.now.redis.Lookup(key.Name); ok {
				there = append(there, key.Name)
			}
		}
		if len(there) == 0 {
			return true, diverged("a key that was loaded", "none")
		}
		keep(minus(there...))
	case schedule.Freezes, schedule.Thaws:
		if r.frozen == (st.Kind == schedule.Freezes) {
			return true, diverged("Redis to be otherwise", "that it is so already")
		}
		r.frozen = st.Kind == schedule.Freezes
	case schedule.FallsBehind:
		if r.link != whole {
			return true, diverged("a replica that has every write", "one that is behind")
		}
		r.link, r.replica, r.lag = behind, r.now.redis, 0
	case schedule.Refuses:
		if r.link != behind {
			return true, diverged("a replica that is behind and not missed", "none")
		}
		r.link = refused
	case schedule.TakesOver:
		if !r.link.lags() {
			return true, diverged("a replica that is behind", "none")
		}
		if r.lag != st.Lost {
			return true, diverged(fmt.Sprintf("a replica that lacks %d writes", st.Lost), fmt.Sprint(r.lag))
		}
		r.now.redis, r.link, r.before = r.replica.Restarted(), alone, nil
	default:
		return false, nil
	}
	return true, nil
}

// loseWrites undoes the last writes to Redis.
func (r *replayer) loseWrites(n int, diverged func(string, string) error) error {
	if n > len(r.before) {
		return diverged(fmt.Sprintf("%d writes to lose", n), fmt.Sprint(len(r.before)))
	}
	keep := len(r.before) - n
	r.now.redis = r.before[keep].Restarted()
	r.before = r.before[:keep]
	return nil
}

// answersAlone is the reply of a server whose replication decides it; ok is false
// for a command that is executed as ever.
func (r *replayer) answersAlone(s step, res redisstore.Result) (reply string, ok bool) {
	switch {
	case isWait(s) && r.link == whole:
		return ":1\r\n", true
	case isWait(s):
		return ":0\r\n", true
	case r.link == refused && !sameKeys(res.State, r.now.redis):
		return noReplicas, true
	}
	return "", false
}

// became notes what the database holds after a statement.
func (r *replayer) became(sql sqlState) {
	if r.forgets && sql.db.Restarted().Key() != r.now.sql.db.Restarted().Key() {
		r.commits = append(r.commits, sqlState{r.now.sql.db.Restarted()})
	}
	r.now.sql = sql
}

// restartDatabase lets PostgreSQL die and come back. Whoever had a transaction or a
// statement in it loses the connection.
func (r *replayer) restartDatabase(st *schedule.Step, diverged func(string, string) error) error {
	if r.now.sql.db == nil {
		return diverged("a database", "none")
	}
	if st.Lost > len(r.commits) {
		return diverged(fmt.Sprintf("%d commits to lose", st.Lost), fmt.Sprint(len(r.commits)))
	}
	sessions := r.now.sql.sessions()
	r.now.sql = sqlState{r.now.sql.db.Restarted()}
	if st.Lost > 0 {
		keep := len(r.commits) - st.Lost
		r.now.sql, r.commits = r.commits[keep], r.commits[:keep]
	}
	for _, name := range r.order {
		c := r.clients[name]
		c.late = slices.DeleteFunc(c.late, func(l lateStep) bool { return l.step.sql })
		if c.run == nil || c.crashed {
			continue
		}
		for _, n := range sessions {
			conn := n - session(c.first, 0)
			if conn < 0 || conn >= c.room {
				continue
			}
			places := c.run.wire.pending()
			i := slices.IndexFunc(places, func(p place) bool { return p.step.sql && p.step.conn == conn })
			if i < 0 {
				continue
			}
			c.blocked = slices.DeleteFunc(c.blocked, func(b int) bool { return b == conn })
			c.cut(places[i])
		}
	}
	return nil
}

// starts lets a job begin.
func (r *replayer) starts(c *replayClient, st *schedule.Step, diverged func(string, string) error) error {
	want := schedule.Load
	if st.Kind == schedule.Reconciles {
		want = schedule.Reconcile
	}
	if c.run != nil || c.op >= len(c.spec.Calls) || c.spec.Calls[c.op].Op != want {
		return diverged(fmt.Sprintf("%s to be about to %s", c.spec.Name, want), "that it is not")
	}
	c.submitted = true
	return nil
}
