package explore

import (
	"fmt"

	"stockproof/faults/schedule"
	"stockproof/model"
	"stockproof/schemes"
)

// counter reads the counter through the scheme's own Read, on a moment that is
// then forgotten.
func (r *replayer) counter() (counter, error) {
	if _, ok := r.entry.Scheme.(schemes.Reader); !ok {
		return counter{}, nil
	}
	a := &automaton{entry: r.entry, times: r.s.Times, retries: -1, role: role{action: read, client: "reader", request: "reader.1"}}
	run := a.start()
	defer func() {
		run.cancel()
		run.wire.kill()
		r.runs = append(r.runs, run)
	}()
	run.settle()
	sql := r.now.sql
	for range maxSolo {
		if run.isDone() {
			return counter{run.result.value, run.result.outcome == model.Value}, nil
		}
		places := run.wire.pending()
		if len(places) == 0 {
			break
		}
		p := places[0]
		if p.call != nil {
			var reply string
			var err error
			if sql, reply, _, err = sql.exec(p.step, maxSlots-1, 0); err != nil {
				return counter{}, err
			}
			run.wire.answerSQL(p.call, reply)
		} else {
			res, err := r.engine.Exec(r.now.redis, splitArgs(p.step.args))
			if err != nil {
				return counter{}, err
			}
			p.conn.reply(res.Reply)
		}
		run.settle()
	}
	return counter{}, nil
}

// conclude says what the execution came to.
func (r *replayer) conclude(w *world) (schedule.End, error) {
	end := schedule.End{Final: r.stock}
	rests := !r.frozen && (r.now.sql.db == nil || len(r.now.sql.db.Waiting()) == 0)
	for _, name := range r.order {
		c := r.clients[name]
		waits := c.run == nil && c.op < len(c.spec.Calls) && schedule.IsJob(c.spec.Calls[c.op].Op) // for the fault that it is
		rests = rests && len(c.late) == 0 && (c.crashed || c.op == len(c.spec.Calls) || waits)
	}
	var ops []model.Operation
	for _, op := range r.history {
		if op.Open && op.label.Outcome == schedule.Unfinished && r.clients[op.label.Client].crashed {
			op.label.Outcome = model.Unknown
		}
		if !schedule.IsJob(op.Op) && op.Op != model.Work {
			ops = append(ops, op.Operation)
		}
		end.Outcomes = append(end.Outcomes, op.label)
	}
	if !rests {
		if r.lowest < 0 {
			end.Violates = append(end.Violates, schedule.Violation{Property: model.NegativeTransient, Amount: r.lowest})
		}
		return end, nil
	}
	at, _ := w.change(-1, func(moment) moment { return r.now })
	at, err := w.atEnd(at)
	if err != nil {
		return end, err
	}
	rest := model.Rest{Initial: r.s.Stock, Taken: r.taken, Lowest: &r.lowest}
	left, err := w.count(at)
	if err != nil {
		return end, err
	}
	if end.Final = (schedule.Stock{Known: left.known, Units: left.value}); left.known {
		rest.Counter = &left.value
	}
	if _, audited := r.entry.Scheme.(schemes.Auditor); audited {
		_, res, err := w.alone(at, orders, 0, prober)
		if err != nil {
			return end, err
		}
		if res.outcome != model.OK {
			return end, fmt.Errorf("%w: orders: %s", ErrScheme, res.err)
		}
		list := decodeOrders(res.orders)
		end.Orders, rest.Orders = &list, &list
		ops, _ = model.Settle(ops, list, 2*int64(len(r.s.Steps))+2)
	}
	_, res, err := w.alone(at, deduct, 1, prober)
	if err != nil {
		return end, err
	}
	rest.Probe = &res.outcome
	for _, f := range judgeHistory(ops, rest) {
		if f.Property == model.NonLinearizable && !f.Evaluated {
			return end, fmt.Errorf("%w: %s", ErrConfig, f.Detail)
		}
		if f.Broken {
			end.Violates = append(end.Violates, schedule.Violation{Property: f.Property, Amount: f.Amount})
		}
	}
	return end, nil
}
