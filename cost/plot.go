package cost

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"stockproof/evidence"
)

// figure is one plot: a curve for each scheme.
type figure struct {
	name, title, x, y string
	logX, logY        bool
	of                func(evidence.Cost) (x, y float64, ok bool)
}

var figures = []figure{
	{"throughput.svg", "Closed loop, one article, nothing futile", "connections", "requests answered per second", true, true, func(c evidence.Cost) (float64, float64, bool) {
		return float64(c.Connections), c.Throughput.Median, c.Experiment == "closed-loop" && c.Futile == 0
	}},
	{"latency.svg", "Open loop, 32 connections: latency from the moment a request was due", "requests offered per second", "99th percentile, µs", true, true, func(c evidence.Cost) (float64, float64, bool) {
		if c.Experiment != "open-loop" || c.OfferedRate == nil {
			return 0, 0, false
		}
		return *c.OfferedRate, c.Latency.P99, true
	}},
	{"commands.svg", "Redis commands a request, by the share that finds nothing", "share of futile requests", "commands", false, false, func(c evidence.Cost) (float64, float64, bool) {
		return c.Futile, c.Commands, c.Experiment == "closed-loop" && c.Connections == 1
	}},
}

// Plot draws what the costs have points for, as SVG files in a folder, and answers
// their names.
func Plot(dir string, costs []evidence.Cost) (names []string, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	for _, f := range figures {
		curves := map[string]plotter.XYs{}
		var schemes []string
		for _, c := range costs {
			x, y, ok := f.of(c)
			if !ok || f.logX && x <= 0 || f.logY && y <= 0 {
				continue
			}
			if curves[c.Scheme] == nil {
				schemes = append(schemes, c.Scheme)
			}
			curves[c.Scheme] = append(curves[c.Scheme], plotter.XY{X: x, Y: y})
		}
		if len(schemes) == 0 {
			continue
		}
		p := plot.New()
		p.Title.Text, p.X.Label.Text, p.Y.Label.Text = f.title, f.x, f.y
		p.Legend.Top, p.Legend.Left = true, f.name != "commands.svg"
		p.Add(plotter.NewGrid())
		if f.logX {
			p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
		}
		if f.logY {
			p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
		} else {
			p.Y.Min = 0
		}
		for i, name := range schemes {
			points := curves[name]
			slices.SortFunc(points, func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) })
			line, marks, err := plotter.NewLinePoints(points)
			if err != nil {
				return names, fmt.Errorf("%s: %w", f.name, err)
			}
			// Shapes and dashes too, for who does not see the colours.
			line.Color, line.Dashes = plotutil.Color(i), plotutil.Dashes(i)
			marks.Color, marks.Shape = plotutil.Color(i), plotutil.Shape(i)
			p.Add(line, marks)
			p.Legend.Add(name, line, marks)
		}
		path := filepath.Join(dir, f.name)
		if err := p.Save(18*vg.Centimeter, 12*vg.Centimeter, path); err != nil {
			return names, fmt.Errorf("%s: %w", f.name, err)
		}
		names = append(names, path)
	}
	return names, nil
}
