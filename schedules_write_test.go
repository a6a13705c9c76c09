package stockproof_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/explore"
	"stockproof/faults"
	"stockproof/faults/schedule"
	"stockproof/model"
)

// writeSchedules searches the shortest schedule of each weakness.
func writeSchedules(t *testing.T, lab *explore.Lab) {
	require.NoError(t, os.MkdirAll(scheduleFolder, 0o755))
	for _, w := range weaknesses() {
		path := filepath.Join(scheduleFolder, w.file())
		_, missing := os.Stat(path)
		if only := os.Getenv("UPDATE_SCHEDULES"); only != "1" && only != w.entry.Scheme.Name() && (only != "missing" || missing == nil) {
			continue
		}
		found := w.shortest(t, lab)
		require.NotNil(t, found, "no search shows %s", w.file())
		found.Notes = map[string]schedule.Note{schedule.PartVersion: {Above: w.comment(found)}}
		if kept, err := schedule.ReadFile(path); err == nil {
			found.Notes[schedule.PartVersion] = kept.Notes[schedule.PartVersion]
			if len(kept.Steps) == len(found.Steps) {
				found.Notes = kept.Notes
				for i := range found.Steps {
					found.Steps[i].Note = kept.Steps[i].Note
				}
			}
		}
		require.NoError(t, os.WriteFile(path, []byte(found.String()), 0o644))
	}
}

// shortest searches every sale of two or three clients and one or two units.
func (w weakness) shortest(t *testing.T, lab *explore.Lab) (best *schedule.Schedule) {
	for clients := 2; clients <= 3; clients++ {
		for _, load := range faults.Workloads() {
			for stock := int64(1); stock <= 2; stock++ {
				cfg := explore.Config{Entry: w.entry, Workload: load, Clients: clients, Stock: stock, Retries: w.retries}
				if w.fault != faults.None {
					cfg.Faults, cfg.MaxFaults = []faults.Kind{w.fault}, 1
					cfg.Settings = []faults.Setting{w.setting}
				}
				r, err := lab.Run(t.Context(), cfg)
				require.NoError(t, err)
				found := r.Verdicts[w.property].Witness
				if found == nil {
					continue
				}
				s := found.Schedule()
				if slices.Equal(s.Faults(), []faults.Kind{w.fault}) && (best == nil || len(s.Steps) < len(best.Steps)) {
					best = s
				}
			}
		}
	}
	return best
}

// comment says in plain words what one sees.
func (w weakness) comment(s *schedule.Schedule) []string {
	var lines []string
	say := func(text string) {
		for len(text) > 96 {
			at := strings.LastIndexByte(text[:96], ' ')
			lines, text = append(lines, "# "+text[:at]), text[at+1:]
		}
		lines = append(lines, "# "+text)
	}
	say(w.entry.Scheme.Name() + ": " + w.why + ".")
	say(w.event(s))
	say(w.result(s))
	return append(lines, "")
}

func (w weakness) event(s *schedule.Schedule) string {
	again := ""
	if s.Retries == "default" {
		again = " go-redis sends it again."
	}
	for i := range s.Steps {
		st := &s.Steps[i]
		who, what := "client "+st.Client, commandOf(st)
		switch st.FaultKind() {
		case faults.ClientCrash:
			return "Client " + st.Client + " is killed after its " + what + "."
		case faults.ClientPause:
			return "Client " + st.Client + " stands still after its " + what + " until the lease is over."
		case faults.RequestLost:
			return "The " + what + " of " + who + " never reaches the server." + again
		case faults.ReplyLost, faults.CommitReplyLost:
			return "The server executes the " + what + " of " + who + ", and the reply is lost." + again
		case faults.RequestDelayed:
			return "The " + what + " of " + who + " is given up, and reaches the server later all the same." + again
		case faults.DuplicateRequest:
			return "Request " + st.Request + " is submitted a second time, through " + who + "."
		case faults.StoreLoses:
			return fmt.Sprintf("Redis comes back without the last of the writes it had acknowledged, %d in number.", st.Lost)
		case faults.ScriptFlush:
			return "Redis forgets its scripts."
		case faults.RedisRestart:
			return map[faults.Setting]string{
				faults.NoPersistence: "Redis restarts and is empty.",
				faults.Snapshot:      "Redis restarts from the snapshot that was saved when the article went on sale.",
				faults.AOFEverySec:   fmt.Sprintf("The machine of Redis dies; of its append-only file the last writes are missing, %d in number.", st.Lost),
				faults.AOFAlways:     "Redis restarts and has lost nothing but its scripts.",
			}[st.Setting]
		case faults.RedisFailover:
			if !slices.ContainsFunc(s.Steps, func(st schedule.Step) bool { return st.Kind == schedule.TakesOver }) {
				return "The link to the replica breaks, so WAIT is not answered."
			}
			return "The link to the replica breaks, and later the replica takes over without what was written since."
		case faults.RedisFreeze:
			return "Redis stands still; commands of clients that have given up run when it goes on."
		case faults.KeyEvicted:
			return "Redis evicts " + st.Key + "."
		case faults.KeyExpired:
			return "The stock was loaded with a time to live, which ends."
		case faults.PostgresRestart:
			if st.Setting == faults.SyncCommitOn {
				return "PostgreSQL restarts; its commits are kept, its transactions are not."
			}
			return fmt.Sprintf("PostgreSQL restarts without the last of the commits it had acknowledged, %d in number.", st.Lost)
		case faults.StockReloaded:
			return "The preload runs again, as client " + st.Client + "."
		case faults.ReconcileOverlap:
			return "A reconciliation job runs, as client " + st.Client + "."
		}
	}
	return "Nothing goes wrong: the order of the steps is enough."
}

// commandOf is the first word or two of a step.
func commandOf(st *schedule.Step) string {
	switch {
	case st.Server == schedule.SQL:
		return strings.ToUpper(strings.Fields(st.Statement + " statement")[0])
	case len(st.Words) > 1 && strings.HasPrefix(st.Words[0], "EVAL"):
		return st.Words[1]
	case len(st.Words) > 0:
		return st.Words[0]
	}
	return "statement"
}

func (w weakness) result(s *schedule.Schedule) string {
	var sold, amount int64
	there := s.Stock
	for _, a := range s.Outcomes {
		switch c, _ := s.Client(a.Client); a.Outcome {
		case model.Sold:
			sold += c.Calls[a.N-1].Qty
		case model.OK:
			if c.Calls[a.N-1].Op == model.Restock {
				there += c.Calls[a.N-1].Qty
			}
		}
	}
	for _, v := range s.Violates {
		if v.Property == w.property {
			amount = v.Amount
		}
	}
	switch w.property {
	case model.Oversell:
		return fmt.Sprintf("At the end %d of %d are sold, %d too many, and the stock says %s.", sold, there, amount, s.Final)
	case model.DoubleSale:
		return "At the end the buyer has bought twice."
	case model.LostUnits:
		return fmt.Sprintf("At the end %d of %d are sold and the stock says %s: %d can never be sold.", sold, there, s.Final, amount)
	case model.PhantomUnits:
		return fmt.Sprintf("At the end %d of %d are sold and the stock says %s: %d that it promises do not exist.", sold, there, s.Final, amount)
	case model.FalseSoldOut:
		return "Somebody is told sold out although there was enough all the time."
	case model.DoubleDeduct:
		return fmt.Sprintf("One request takes its units twice; the stock says %s.", s.Final)
	case model.Unsold:
		return fmt.Sprintf("At the end somebody was turned away as busy, and the stock says %s: nobody bought them.", s.Final)
	}
	info, _ := w.property.Info()
	return fmt.Sprintf("At the end: %s (%d %s).", info.BrokenWhen, amount, info.Unit)
}
