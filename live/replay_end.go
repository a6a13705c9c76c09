package live

import (
	"context"
	"errors"
	"fmt"

	"stockproof/faults/schedule"
	"stockproof/histories"
	"stockproof/live/clients"
	"stockproof/model"
	"stockproof/schemes"
)

// counter reads the counter past the proxies.
func (r *replay) counter(ctx context.Context) (schedule.Stock, error) {
	reader, ok := r.entry.Scheme.(schemes.Reader)
	if !ok {
		return schedule.Stock{}, nil
	}
	left, err := reader.Read(ctx, r.env, r.sku)
	switch {
	case errors.Is(err, schemes.ErrNoStock):
		return schedule.Stock{}, nil
	case err != nil:
		return schedule.Stock{}, fmt.Errorf("read the counter: %w", err)
	}
	return schedule.Stock{Known: true, Units: left}, nil
}

// conclude says what the execution came to.
func (r *replay) conclude(ctx context.Context) (schedule.End, error) {
	end := schedule.End{Final: r.stock}
	rests := true
	for _, name := range r.order {
		c := r.clients[name]
		waits := !c.begun && c.op < len(c.spec.Calls) && schedule.IsJob(c.spec.Calls[c.op].Op) // for the fault that it is
		rests = rests && len(c.late)+len(c.blocked)+len(c.orphans) == 0 && (c.crashed || c.op == len(c.spec.Calls) || waits)
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
	if _, err := r.world.leasesOver(ctx, r.entry, r.env, r.sku); err != nil {
		return end, err
	}
	if err := r.world.workDone(ctx, r.entry, r.env, r.sku); err != nil {
		return end, err
	}
	rest := model.Rest{Initial: r.s.Stock, Taken: r.taken, Lowest: &r.lowest}
	var err error
	if end.Final, err = r.counter(ctx); err != nil {
		return end, err
	}
	if end.Final.Known {
		rest.Counter = &end.Final.Units
	}
	if auditor, audited := r.entry.Scheme.(schemes.Auditor); audited {
		list, err := auditor.Orders(ctx, r.env, r.sku)
		if err != nil {
			return end, fmt.Errorf("audit the orders: %w", err)
		}
		for i := range list {
			list[i].Request = r.plain(list[i].Request)
		}
		end.Orders, rest.Orders = &list, &list
		ops, _ = model.Settle(ops, list, 2*int64(len(r.s.Steps))+2)
	}
	// The probe has the published times: a slow machine is not a stuck sale.
	env := r.env
	env.Config = schemes.Config{}
	probe := clients.Do(ctx, r.entry.Scheme, env, clients.Operation{
		Op: model.Deduct, SKU: r.sku, Qty: 1, Request: "probe@" + r.sku, Buyer: "probe",
	})
	if err := errors.Join(context.Cause(ctx), r.world.Servers.Alive()); err != nil {
		return end, fmt.Errorf("probe: %w", err) // no answer of the sale's
	}
	rest.Probe = &probe.Outcome
	history := histories.History{Name: r.s.Scheme, SKU: r.s.SKU, Initial: r.s.Stock, Ops: model.AtRest(ops, rest.Counter)}
	checked, err := histories.Check(history, checkLimit, "")
	if err != nil {
		return end, err
	}
	if checked.Verdict == histories.Undecided {
		return end, errors.New("whether the history is linearizable was not decided")
	}
	for _, f := range append(model.Laws(ops, rest), checked.Finding()) {
		if f.Broken {
			end.Violates = append(end.Violates, schedule.Violation{Property: f.Property, Amount: f.Amount})
		}
	}
	return end, nil
}
