package model

import "math"

// mostUnits bounds how many operations a relaxation to units may make of a
// history.
const mostUnits = 4 << 20

// relaxed tries to show that the history is impossible from weaker ones, which
// are easier to decide: a history that is linearizable stays so when checks
// are left out, and when a move of many units is taken for that many moves of
// one. It needs a complete frontier to begin from, which the first checkpoint
// has. Each of them may look at so many states.
func (b *beam) relaxed(budget int64) bool {
	start := b.points[0]
	if !start.complete {
		return false
	}
	x := b.failed
	for _, keep := range []int{1, 4, 16, 64} {
		if b.refutes(start, budget, func(it item) []item {
			if it.delta == 0 && it.index != x.index && (it.index > x.index || it.ret < b.lastChecks(keep)) {
				return nil
			}
			return []item{it}
		}, "all but the last checks before it") {
			return true
		}
	}
	if b.unit || start.pos != 0 {
		return false // pending operations of the checkpoint cannot be taken apart
	}
	for _, onlyUnknown := range []bool{true, false} {
		what := "that the units of one operation go together"
		if onlyUnknown {
			what = "that the units of one unknown operation go together"
		}
		made := int64(0)
		if b.refutes(start, budget, func(it item) []item {
			n := max(it.delta, -it.delta)
			if n <= 1 || onlyUnknown && !it.open {
				return []item{it}
			}
			if made += n; made > mostUnits {
				return nil
			}
			parts := make([]item, n)
			for i := range parts {
				parts[i] = it
				parts[i].delta = it.delta / n
			}
			return parts
		}, what) && made <= mostUnits {
			return true
		}
		b.out = nil
	}
	return false
}

// lastChecks is a time such that only so many checks of the buffer returned
// between it and the operation that failed.
func (b *beam) lastChecks(keep int) int64 {
	for pos := b.pos - 1; pos >= b.past.first; pos-- {
		if it := b.past.at(pos); it.delta == 0 {
			if keep--; keep < 0 {
				return it.ret
			}
		}
	}
	return math.MinInt64
}

// refutes says whether the history, with each item replaced, is impossible; the
// judgement then is made.
func (b *beam) refutes(start checkpoint, budget int64, replace func(item) []item, what string) bool {
	r := &beam{engine: newEngine(b.initial, false, b.level), limits: b.limits, initial: b.initial}
	r.load(start)
	r.level = b.levels()[len(b.levels())-1]
	r.work, r.most = 0, budget
	defer func() { b.work += r.work }()
	alive := true
	for pos := b.past.first; pos < b.pos; pos++ {
		it := b.past.at(pos)
		for alive && r.due(it.call) {
			alive = r.answer()
		}
		if !alive || !r.complete || r.work > budget {
			break
		}
		for _, part := range replace(it) {
			r.call(part)
		}
		if r.unit != b.unit {
			r.level.excursions = true
		}
	}
	for alive && r.complete && len(r.heap) > 0 && r.work <= budget && r.slots[r.heap[0]].ret <= b.failed.ret {
		alive = r.answer()
	}
	if alive || !r.complete {
		return false
	}
	b.failed = r.failed
	b.engine.failed = r.failed
	lo, hi := r.bounds()
	b.out = &Judgement{Ruling: Illegal, Method: "relaxation", Refutation: &Refutation{Op: int(r.failed.index), Lowest: lo, Highest: hi, Relaxed: what}}
	return true
}
