package explore

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"stockproof/faults"
	"stockproof/model"
)

func TestAnyTry(t *testing.T) {
	lab := newLab(t)
	wls := []string{"unit"}
	if e := os.Getenv("WL"); e != "" {
		wls = strings.Split(e, ",")
	}
	names := []string{"hincrby", "lua-hash", "lua-string", "naive", "naive-set", "lock", "lock-set", "lock-watchdog"}
	if e := os.Getenv("SCH"); e != "" {
		names = strings.Split(e, ",")
	}
	rets := []string{"off"}
	if e := os.Getenv("RET"); e != "" {
		rets = strings.Split(e, ",")
	}
	for _, name := range names {
		for _, wl := range wls {
			for _, ret := range rets {
				for _, f := range append([]faults.Kind{faults.None}, every...) {
					cfg := AnyConfig{Config: one(t, name, f, wl, ret), MostClients: 3, Unbounded: os.Getenv("UNB") != ""}
					began := time.Now()
					r, err := lab.RunAny(t.Context(), cfg)
					if err != nil {
						fmt.Println(name, f, wl, err)
						continue
					}
					line := ""
					for _, p := range AnyProperties() {
						i, _ := p.Info()
						v := r.Verdicts[p]
						switch v.Status {
						case Violated:
							line += fmt.Sprintf(" %s%d", i.Letter, v.Clients)
						case Holds:
							line += " " + strings.ToLower(i.Letter)
						default:
							line += " ?" + i.Letter
						}
					}
					_ = model.Oversell
					fmt.Printf("%-14s %-18s %-8s %-8s %s  fin=%v cap=%d mono=%v ctl=%d loc=%d states=%d moves=%d %v %s\n", name, f, wl, ret, line, r.Finite, r.Cap, r.Monotone, r.Controls, r.Locals, r.States, r.Moves, time.Since(began).Round(time.Millisecond), r.Why)
				}
			}
		}
	}
}
