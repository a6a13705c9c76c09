package claims

import (
	"fmt"
	"strconv"

	"stockproof/evidence"
)

// costs is the cost table of a report.
type costs []evidence.Cost

// leastRepetitions is how often a cost must have been measured before anything
// rests on it.
const leastRepetitions = 5

// plain are the closed-loop costs of a scheme without special settings at a
// number of connections and a share of futile requests; those that fit best
// come first in the order of the table.
func (cs costs) plain(scheme string, connections int, futile func(float64) bool) (found []evidence.Cost) {
	for _, c := range cs {
		if c.Scheme == scheme && c.OfferedRate == nil && len(c.Settings) == 0 && c.SKUs <= 1 && c.Repetitions >= leastRepetitions &&
			(connections == 0 || c.Connections == connections) && futile(c.Futile) {
			found = append(found, c)
		}
	}
	return found
}

func mostlyFutile(share float64) bool { return share >= 0.9 }
func noneFutile(share float64) bool   { return share == 0 }
func anyShare(float64) bool           { return true }

// open are the costs at offered rates.
func (cs costs) open(schemes ...string) (found []evidence.Cost) {
	for _, c := range cs {
		for _, s := range schemes {
			if c.Scheme == s && c.OfferedRate != nil && c.Repetitions >= leastRepetitions {
				found = append(found, c)
			}
		}
	}
	return found
}

// setting is a number among the settings of a cost.
func setting(c evidence.Cost, key string) (value float64, ok bool) {
	value, err := strconv.ParseFloat(c.Settings[key], 64)
	return value, err == nil
}

// with are the costs that were measured with a setting.
func (cs costs) with(key string) (found []evidence.Cost) {
	for _, c := range cs {
		if _, ok := setting(c, key); ok && c.Repetitions >= leastRepetitions {
			found = append(found, c)
		}
	}
	return found
}

// compare measures two schemes side by side, at every number of connections
// from least on that both have, and none of the requests futile.
func compare(less, more string, least int, test func(less, more evidence.Cost) bool) func(costs) (evidence.Text, bool, bool) {
	return func(cs costs) (found evidence.Text, there, holds bool) {
		holds = true
		for _, a := range cs.plain(less, 0, noneFutile) {
			if a.Connections < least {
				continue
			}
			for _, b := range cs.plain(more, a.Connections, noneFutile) {
				there = true
				holds = holds && test(a, b)
				s := fmt.Sprintf("%d: %s %.0f/s, p50 %.0f µs; %s %.0f/s, p50 %.0f µs", a.Connections, less, a.Throughput.Median, a.Latency.P50, more, b.Throughput.Median, b.Latency.P50)
				found = evidence.Text{EN: join(found.EN, "connections "+s), ZH: join(found.ZH, "连接数 "+s)}
			}
		}
		return found, there, there && holds
	}
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// slower: less throughput, apart beyond the intervals.
func slower(less, more evidence.Cost) bool { return less.Throughput.High < more.Throughput.Low }

// roundTrips wants a counted mean of round trips for plain costs of a scheme.
func roundTrips(scheme string, at func(futile float64) float64) func(costs) (evidence.Text, bool, bool) {
	return func(cs costs) (found evidence.Text, there, holds bool) {
		holds = true
		none, most := false, false
		for _, c := range cs.plain(scheme, 0, anyShare) {
			none, most = none || noneFutile(c.Futile), most || mostlyFutile(c.Futile)
			holds = holds && near(c.RoundTrips, at(c.Futile))
			s := fmt.Sprintf("%.2f (%.0f %%)", c.RoundTrips, 100*c.Futile)
			found = evidence.Text{EN: join(found.EN, s), ZH: join(found.ZH, s)}
		}
		return found, none && most, holds
	}
}

// near allows two in a hundred: a warm-up that is counted, a share that was not
// met to the request.
func near(is, want float64) bool { return is > want*0.98 && is < want*1.02 }
