package catalogue

import (
	"database/sql"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"stockproof/live/servers"
	"stockproof/model"
)

// twoInside is what two holders of one lock do to one unit: both have read it.
func twoInside(s *shop, enter, over func()) Numbers {
	s.load(s.r, 1)
	enter()
	a := s.stock(s.r)
	over()
	b := s.stock(s.r)
	n := Numbers{"S": 1, "R": 2}
	for _, read := range []int64{b, a} {
		if read >= 1 {
			s.load(s.r, read-1)
			n["yes"]++
		}
	}
	n["final"] = s.stock(s.r)
	return n
}

// leaseEnds: a takes the lock for a while and does not come back before it is over.
func leaseEnds(s *shop) Numbers {
	return twoInside(s,
		func() { require.True(s, s.locked(s.r, "lock", "a", 20*time.Millisecond)) },
		func() {
			s.until("the end of the lease", func() bool { return s.locked(s.r, "lock", "b", time.Minute) })
		})
}

// A lock around read, check and write.
var locks = []scenario{
	{Entry{ID: "O-26", Title: "The lease ends during a pause; no fencing", Scheme: "lock, lock-set, setnx-lock", Fault: "client-pause", Breaks: laws(model.Oversell),
		Expected: Numbers{"S": 1, "R": 2, "yes": 2, "final": 0}, Schedules: []string{"lock-set-pause-oversell", "lock-pause-oversell", "setnx-lock-pause-oversell"}}, leaseEnds},
	{Entry{ID: "O-27", Title: "Deleting a lock that is no longer one's own", Scheme: "setnx-lock", Fault: "client-pause", Breaks: laws(model.Oversell),
		Expected: Numbers{"S": 1, "R": 3, "yes": 3, "final": 0}, Schedules: []string{"setnx-lock-pause-oversell"}},
		func(s *shop) Numbers {
			s.load(s.r, 1)
			require.True(s, s.locked(s.r, "lock", "a", 20*time.Millisecond))
			reads := []int64{s.stock(s.r)}
			s.until("the end of the lease", func() bool { return s.locked(s.r, "lock", "b", time.Minute) })
			reads = append(reads, s.stock(s.r))
			s.unlock(s.r, "lock") // a, which thinks that it is its own
			require.True(s, s.locked(s.r, "lock", "c", time.Minute))
			reads = append(reads, s.stock(s.r))
			n := Numbers{"S": 1, "R": 3}
			for _, read := range reads {
				if read >= 1 {
					s.load(s.r, read-1)
					n["yes"]++
				}
			}
			n["final"] = s.stock(s.r)
			return n
		}},
	{Entry{ID: "O-28", Title: "Unlock runs although the lock was not obtained", Scheme: "a lock with an unguarded finally", Fault: "none", Breaks: laws(model.Oversell),
		Expected: Numbers{"S": 1, "R": 3, "yes": 2}},
		func(s *shop) Numbers {
			n := twoInside(s,
				func() { require.True(s, s.locked(s.r, "lock", "a", time.Minute)) },
				func() {
					require.False(s, s.locked(s.r, "lock", "b", time.Minute))
					s.unlock(s.r, "lock")
					require.True(s, s.locked(s.r, "lock", "c", time.Minute))
				})
			n["R"] = 3
			return n
		}},
	{Entry{ID: "O-29", Title: "Lock and expiry are set in two commands", Scheme: "SETNX, then EXPIRE", Fault: "client-crash", Breaks: laws(model.Stuck),
		Expected: Numbers{"S": 10, "R": 10, "yes": 0, "final": 10}},
		func(s *shop) Numbers {
			s.load(s.r, 10)
			require.True(s, s.locked(s.r, "lock", "dead", 0))
			return s.nobodyEnters(s.r, 10)
		}},
	{Entry{ID: "O-30", Title: "A fixed lease switches the watchdog off", Scheme: "lock", Fault: "client-pause", Breaks: laws(model.Oversell),
		Expected: Numbers{"S": 1, "R": 2, "yes": 2}, Schedules: []string{"lock-pause-oversell"}}, leaseEnds},
	{Entry{ID: "O-31", Title: "The watchdog keeps the lock of a dead holder", Scheme: "lock-watchdog", Fault: "a thread that hangs in a process that lives", Breaks: laws(model.Stuck),
		Expected: Numbers{"S": 10, "R": 10, "yes": 0, "final": 10}},
		func(s *shop) Numbers {
			s.load(s.r, 10)
			require.True(s, s.locked(s.r, "lock", "hangs", time.Minute))
			n := Numbers{}
			for range 10 { // between two attempts the watchdog renews
				require.True(s, s.r.PExpire(s.ctx, s.k("lock"), time.Minute).Val())
				n["errors"] += s.nobodyEnters(s.r, 1)["errors"]
			}
			n["S"], n["R"], n["yes"], n["final"] = 10, 10, 0, s.stock(s.r)
			return n
		}},
	{Entry{ID: "O-32", Title: "The lock is lost in a failover", Scheme: "lock, setnx-lock", Fault: "redis-failover", Breaks: laws(model.Oversell),
		Expected: Numbers{"S": 1, "R": 2, "yes": 2}, Schedules: []string{"lock-redis-failover-async-oversell"}},
		func(s *shop) Numbers {
			server, old := s.own(servers.RedisOptions{Replica: true})
			next := s.at(server.Replica.Addr)
			return twoInside(s,
				func() {
					require.NoError(s, old.Set(s.ctx, "before", 1, 0).Err())
					require.NoError(s, old.Wait(s.ctx, 1, 10*time.Second).Err())
					require.NoError(s, server.Replica.CutLink(s.ctx, server.Node))
					require.True(s, s.locked(old, "lock", "a", time.Minute))
				},
				func() {
					require.NoError(s, server.Replica.Promote(s.ctx))
					require.True(s, s.locked(next, "lock", "b", time.Minute))
				})
		}},
	{Entry{ID: "O-33", Title: "The lock is lost in a restart", Scheme: "lock, setnx-lock", Fault: "redis-restart", Breaks: laws(model.Oversell),
		Expected: Numbers{"S": 1, "R": 2, "yes": 2}, Schedules: []string{"lock-redis-restart-none-oversell"}},
		func(s *shop) Numbers {
			server, own := s.own(servers.RedisOptions{})
			return twoInside(s,
				func() { require.True(s, s.locked(own, "lock", "a", time.Minute)) },
				func() {
					require.NoError(s, server.Kill(s.ctx))
					require.NoError(s, server.Start(s.ctx))
					require.True(s, s.locked(s.at(server.Addr), "lock", "b", time.Minute))
				})
		}},
	{Entry{ID: "O-35", Title: "The lock is released before the transaction commits", Scheme: "lock around a part of a transaction", Fault: "none", Breaks: laws(model.Oversell),
		Expected: Numbers{"S": 1, "R": 2, "yes": 2, "final": 0}},
		func(s *shop) Numbers {
			s.goods(1)
			n := Numbers{"S": 1, "R": 2}
			a := s.begin(nil)
			require.True(s, s.locked(s.r, "lock", "a", time.Minute))
			require.EqualValues(s, 1, s.one(a, readStock, s.sku))
			s.exec(a, writeStock, s.sku, 0)
			s.unlock(s.r, "lock")
			b := s.begin(nil)
			require.True(s, s.locked(s.r, "lock", "b", time.Minute))
			read := s.one(b, readStock, s.sku)
			require.NoError(s, a.Commit())
			n["yes"]++
			if read >= 1 {
				s.exec(b, writeStock, s.sku, read-1)
				require.NoError(s, b.Commit())
				n["yes"]++
			}
			n["final"] = s.one(s.db, readStock, s.sku)
			return n
		}},
	{Entry{ID: "O-36", Title: "The lock does not cover the same thing", Scheme: "a lock named after the buyer", Fault: "none", Breaks: laws(model.Oversell),
		Expected: Numbers{"S": 1, "R": 2, "yes": 2}},
		func(s *shop) Numbers {
			return twoInside(s,
				func() { require.True(s, s.locked(s.r, "lock of a", "a", time.Minute)) },
				func() { require.True(s, s.locked(s.r, "lock of b", "b", time.Minute)) })
		}},
	{Entry{ID: "O-37", Title: "A try-lock without patience leaves stock unsold", Scheme: "setnx-lock without waiting", Fault: "none", Breaks: laws(model.FalseSoldOut),
		Expected: Numbers{"S": 100, "R": 1000, "yes": 30, "final": 70}, Built: true,
		Otherwise: "How many meet is chance, and the entry gives an example: here the thousand come in 30 crowds of which each has one winner"},
		func(s *shop) Numbers {
			s.load(s.r, 100)
			n := Numbers{"S": 100, "R": 1000}
			asked := int64(0)
			for crowd := range int64(30) {
				require.True(s, s.locked(s.r, "lock", "winner", time.Minute))
				asked++
				for ; asked < (crowd+1)*1000/30; asked++ {
					require.False(s, s.locked(s.r, "lock", "late", time.Minute))
					n["refused"]++
				}
				s.decr(s.r)
				n["yes"]++
				s.unlock(s.r, "lock")
			}
			n["final"] = s.stock(s.r)
			return n
		}},
	{Entry{ID: "O-38", Title: "A wrapper that fails open when Redis is down", Scheme: "lock that answers yes on an error", Fault: "redis-restart", Breaks: laws(model.Oversell),
		Expected: Numbers{"S": 1, "R": 2, "yes": 2}},
		func(s *shop) Numbers {
			server, _ := s.own(servers.RedisOptions{})
			require.NoError(s, server.Kill(s.ctx))
			down := s.at(server.Addr, func(o *redis.Options) { o.DialTimeout = 100 * time.Millisecond; o.DialerRetries = 1 })
			open := func() { require.Error(s, down.SetNX(s.ctx, s.k("lock"), "x", time.Minute).Err()) }
			return twoInside(s, open, open)
		}},
	{Entry{ID: "O-39", Title: "A member of a Redlock comes back empty", Scheme: "Redlock", Fault: "redis-restart of a member", Breaks: laws(model.Oversell),
		Expected:  Numbers{"S": 1, "R": 2, "yes": 2},
		Otherwise: "Three members, of which two are a majority, instead of five and three"},
		func(s *shop) Numbers {
			var members [3]*servers.Redis
			var at [3]*redis.Client
			for i := range members {
				members[i], at[i] = s.own(servers.RedisOptions{})
			}
			return twoInside(s,
				func() { // the third does not hear of it
					require.True(s, s.locked(at[0], "lock", "a", time.Minute))
					require.True(s, s.locked(at[1], "lock", "a", time.Minute))
				},
				func() {
					require.NoError(s, members[1].Kill(s.ctx))
					require.NoError(s, members[1].Start(s.ctx))
					require.False(s, s.locked(at[0], "lock", "b", time.Minute))
					require.True(s, s.locked(s.at(members[1].Addr), "lock", "b", time.Minute))
					require.True(s, s.locked(at[2], "lock", "b", time.Minute))
				})
		}},
}

// nobodyEnters tries to take the lock for each of some requests.
func (s *shop) nobodyEnters(r *redis.Client, requests int) Numbers {
	n := Numbers{"S": 10, "R": int64(requests), "yes": 0}
	for range requests {
		if s.locked(r, "lock", "next", time.Minute) {
			n["yes"]++
		} else {
			n["errors"]++
		}
	}
	n["final"] = s.stock(r)
	return n
}

var repeatable = &sql.TxOptions{Isolation: sql.LevelRepeatableRead}
