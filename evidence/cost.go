package evidence

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
)

// Cost is what one scheme costs under one load: one line of the cost table.
//
//	{"scheme":"lua-hash","experiment":"closed-loop","settings":{"aof":"off"},
//	 "futile":0.5,"skus":1,"connections":32,"offered_rate":null,
//	 "requests":200000,"repetitions":5,"round_trips":1,"commands":1,
//	 "throughput":{"median":81000,"low":79500,"high":82300},
//	 "latency_us":{"p50":380,"p90":520,"p99":910,"p99_9":2400},
//	 "busy":0,"conflicts":0,"errors":0,"server_cpu":0.97,"postgres_cpu":0}
//
// Ratios between schemes are taken only among costs of one report.
type Cost struct {
	Scheme     string `json:"scheme"`
	Experiment string `json:"experiment"` // what was varied: closed-loop, open-loop, skus, script-length, aof, settings
	// Settings are what differs from a plain run, such as aof=always, script_ms=5,
	// wait_ms=500: words and numbers without units, which are part of the name.
	Settings    map[string]string `json:"settings,omitempty"`
	Futile      float64           `json:"futile"` // share of requests that find nothing to buy, 0 to 1
	SKUs        int               `json:"skus"`   // articles the requests are spread over; 1 is a hot article
	Connections int               `json:"connections"`
	// OfferedRate is the requests per second of an open loop, whose latencies
	// count from the moment at which a request was due; nil in a closed loop,
	// where each connection sends its next request after the answer.
	OfferedRate *float64 `json:"offered_rate"`
	Requests    uint64   `json:"requests"`    // measured, of all repetitions
	Repetitions int      `json:"repetitions"` // behind the intervals
	RoundTrips  float64  `json:"round_trips"` // per request, counted
	Commands    float64  `json:"commands"`    // per request, counted by the server, those of scripts included
	// Throughput in requests answered per second.
	Throughput Interval    `json:"throughput"`
	Latency    Percentiles `json:"latency_us"`
	Busy       float64     `json:"busy"`      // share of requests, 0 to 1
	Conflicts  float64     `json:"conflicts"` // share of requests that met another's write, 0 to 1
	Errors     float64     `json:"errors"`    // share of requests failed or unknown, 0 to 1
	// ServerCPU and PostgresCPU are the processor time of the two servers while
	// measuring, of one core: 1 is a core kept busy.
	ServerCPU   float64 `json:"server_cpu"`
	PostgresCPU float64 `json:"postgres_cpu"`
	// Bystander is the latency of a client that reads a key of its own on the same
	// Redis meanwhile; nil where none did.
	Bystander *Percentiles `json:"bystander_us,omitempty"`
}

// Interval is a median with the range its repetitions support.
type Interval struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// Percentiles of a latency, in microseconds.
type Percentiles struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99_9"`
}

// Name is the experiment with its settings, in a fixed order.
func (c Cost) Name() string {
	name := c.Experiment
	for _, key := range slices.Sorted(maps.Keys(c.Settings)) {
		name += " " + key + "=" + c.Settings[key]
	}
	return name
}

// CostTable writes the costs of a report, each a row.
func (r Report) CostTable(w io.Writer, markdown bool) error {
	t := r.costs()
	text := t.Render()
	if markdown {
		text = t.RenderMarkdown()
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

func (r Report) costs() table.Writer {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"scheme", "experiment", "connections", "SKUs", "futile", "offered/s", "round trips", "commands", "answered/s", "p50 µs", "p99 µs", "p99.9 µs", "busy", "conflicts", "errors", "Redis CPU", "PostgreSQL CPU", "bystander p99 µs"})
	for _, c := range r.Cost {
		offered := ""
		if c.OfferedRate != nil {
			offered = fmt.Sprintf("%.0f", *c.OfferedRate)
		}
		share := func(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }
		bystander := ""
		if c.Bystander != nil {
			bystander = fmt.Sprintf("%.0f", c.Bystander.P99)
		}
		t.AppendRow(table.Row{c.Scheme, c.Name(), c.Connections, c.SKUs, fmt.Sprintf("%.0f %%", 100*c.Futile), offered, fmt.Sprintf("%.2f", c.RoundTrips), fmt.Sprintf("%.2f", c.Commands),
			fmt.Sprintf("%.0f (%.0f–%.0f)", c.Throughput.Median, c.Throughput.Low, c.Throughput.High), fmt.Sprintf("%.0f", c.Latency.P50), fmt.Sprintf("%.0f", c.Latency.P99), fmt.Sprintf("%.0f", c.Latency.P999),
			share(c.Busy), share(c.Conflicts), share(c.Errors), fmt.Sprintf("%.0f %%", 100*c.ServerCPU), fmt.Sprintf("%.0f %%", 100*c.PostgresCPU), bystander})
	}
	return t
}
