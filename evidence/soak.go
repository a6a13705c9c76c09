//go:build !nolive

package evidence

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"stockproof/explore"
	"stockproof/faults"
	"stockproof/faults/schedule"
	"stockproof/live"
	"stockproof/model"
	"stockproof/schemes"
)

// SoakVerdict is the verdict of a soak on one property.
type SoakVerdict struct {
	Property model.Property `json:"property"`
	Verdict  Verdict        `json:"verdict"`
	Amount   int64          `json:"amount"` // worst of one sale, in the property's unit
	Sales    int            `json:"sales"`  // that broke it
	Reason   string         `json:"reason,omitempty"`
}

// FromSoak judges a soak. A property holds only when every sale that was judged
// showed that it does and every kind of fault that was asked for was seen to
// fire.
func FromSoak(e schemes.Entry, kinds []faults.Kind, r *live.SoakResult) []SoakVerdict {
	var verdicts []SoakVerdict
	for _, p := range model.Properties() {
		v := r.Verdicts[p.ID]
		s := SoakVerdict{Property: p.ID, Verdict: Holds, Amount: v.Worst, Sales: v.Broken, Reason: v.Detail}
		never := slices.IndexFunc(kinds, func(k faults.Kind) bool { return r.Fired[k] == 0 })
		switch {
		case v.Broken > 0:
			s.Verdict = Violated
		case p.ID == model.OrderMismatch && !writesOrders(e):
			s.Verdict, s.Reason = NotApplicable, "the scheme writes no orders"
		case r.Sales == 0:
			s.Verdict, s.Reason = Inconclusive, "no sale was judged"
		case v.Evaluated < r.Sales:
			s.Verdict, s.Reason = Inconclusive, fmt.Sprintf("%d of %d sales: %s", r.Sales-v.Evaluated, r.Sales, v.Detail)
		case never >= 0:
			s.Verdict, s.Reason = Inconclusive, fmt.Sprintf("%s never fired", kinds[never])
		}
		verdicts = append(verdicts, s)
	}
	return verdicts
}

// SoakExit is the exit status of a soak.
func SoakExit(verdicts []SoakVerdict) int {
	status := ExitOK
	for _, v := range verdicts {
		switch v.Verdict {
		case Violated:
			return ExitBroken
		case Inconclusive:
			status = ExitInconclusive
		}
	}
	return status
}

// SoakSchedule is a schedule that shows what a soak found.
type SoakSchedule struct {
	Property model.Property `json:"property"`
	Path     string         `json:"path,omitempty"` // below the folder of the soak
	// Cut: the steps of the whole sale, as they were; otherwise explore searched for
	// the smallest execution that shows the same, which is not what happened.
	Cut  bool   `json:"cut_from_the_log"`
	Says string `json:"says"`
}

// Soak writes, for each property that a soak saw broken, the schedule of the
// smallest sale that broke it, where explore can run and accepts it, and the
// smallest execution that shows the same with the same scheme, retries and one
// of the faults of that sale. A soak that was stopped is not searched for.
func (w *LiveSchedules) Soak(ctx context.Context, r *live.SoakResult) (list []SoakSchedule, err error) {
	for _, p := range model.Properties() {
		v := r.Verdicts[p.ID]
		if v.Run == nil {
			continue
		}
		sale := live.SaleHistory(v.Sale)
		path := fmt.Sprintf("%s.schedule", sale[:len(sale)-len(filepath.Ext(sale))])
		_, why, err := w.fit(v.Run, path, fmt.Sprintf("# What the proxies saw of sale %d of a soak.", v.Sale))
		if err != nil {
			return list, err
		}
		cut := SoakSchedule{Property: p.ID, Path: path, Cut: true, Says: fmt.Sprintf("sale %d step by step, cut from the log of the proxies and replayed in explore", v.Sale)}
		if why != "" {
			cut.Path, cut.Says = "", fmt.Sprintf("sale %d cannot be replayed in explore: %s", v.Sale, why)
		}
		list = append(list, cut)
		if r.Stopped {
			list = append(list, SoakSchedule{Property: p.ID, Says: "stopped before explore searched for the smallest execution"})
			continue
		}
		small, err := w.smallest(ctx, v.Run, p.ID)
		if err != nil {
			return list, err
		}
		found := SoakSchedule{Property: p.ID, Says: "explore finds no execution with one fault and three clients that shows it"}
		if small != nil {
			found.Path = string(p.ID) + ".smallest.schedule"
			found.Says = fmt.Sprintf("%d steps with %s, found by search: the smallest that shows it, not what happened", len(small.Steps), small.Faults()[0])
			note := fmt.Sprintf("# Found by explore: the smallest way to %s with one of the faults of sale %d of a soak.\n# It is not what happened there.", p.ID, v.Sale)
			if err := writeSchedule(filepath.Join(w.dir, found.Path), small, note); err != nil {
				return list, err
			}
		}
		list = append(list, found)
	}
	return list, nil
}

// smallest searches the smallest execution with no fault or one of those that
// happened in a run.
func (w *LiveSchedules) smallest(ctx context.Context, run *live.Run, p model.Property) (best *schedule.Schedule, err error) {
	kinds := []faults.Kind{faults.None}
	for _, st := range run.Steps {
		if st.Fault != "" && !slices.Contains(kinds, st.Fault) {
			kinds = append(kinds, st.Fault)
		}
	}
	for _, kind := range kinds {
		s, err := w.minimiser.Smallest(ctx, explore.Sought{Scheme: run.Case.Entry.Scheme.Name(), Retries: run.Case.Retries, Fault: kind}, p)
		if err != nil {
			return nil, err
		}
		if s != nil && (best == nil || len(s.Clients) < len(best.Clients) || len(s.Clients) == len(best.Clients) && len(s.Steps) < len(best.Steps)) {
			best = s
		}
	}
	return best, nil
}
