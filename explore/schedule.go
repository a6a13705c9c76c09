package explore

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"stockproof/faults/schedule"
	"stockproof/model"
)

// Schedule is the witness in the form that is kept, read and replayed.
func (w *Witness) Schedule() *schedule.Schedule {
	s := &schedule.Schedule{Scheme: w.Scheme, Times: w.Times, Retries: w.Retries, SKU: sku, Stock: w.Stock,
		End: schedule.End{Outcomes: w.Outcomes, Final: stockOf(w.Counter), Orders: w.Orders, Violates: violations(w.Broken)}}
	for _, c := range w.Clients {
		client := schedule.Client{Name: c.Name}
		for _, call := range c.Calls {
			client.Calls = append(client.Calls, schedule.Call{Op: call.Op, Qty: call.Qty, As: c.Resubmits})
		}
		s.Clients = append(s.Clients, client)
	}
	was := schedule.Stock{Known: true, Units: w.Stock}
	for _, st := range w.Steps {
		line := st.line()
		if is := stockOf(st.Counter); is != was {
			line.Stock, was = &is, is
		}
		s.Steps = append(s.Steps, line)
	}
	s.Number()
	return s
}

// Timeline is the execution for reading.
func (w *Witness) Timeline() string { return w.Schedule().String() }

func stockOf(counter *int64) schedule.Stock {
	if counter == nil {
		return schedule.Stock{}
	}
	return schedule.Stock{Known: true, Units: *counter}
}

// violations are the broken laws in the order of the design.
func violations(broken []model.Finding) (list []schedule.Violation) {
	for _, p := range model.Properties() {
		for _, f := range broken {
			if f.Property == p.ID {
				list = append(list, schedule.Violation{Property: f.Property, Amount: f.Amount})
			}
		}
	}
	return list
}

// lineKinds are the kinds of step as a schedule names them.
var lineKinds = map[StepKind]schedule.Kind{
	StepCommand: schedule.Command, StepGranted: schedule.GoesOn, StepDeadlock: schedule.Deadlock,
	StepArrives: schedule.Arrives, StepNever: schedule.Never, StepResume: schedule.Resume, StepWait: schedule.Wait,
	StepLoses: schedule.Loses, StepFlush: schedule.Flush, StepResubmit: schedule.Submits,
	StepRestarts: schedule.Restarts, StepFallsBehind: schedule.FallsBehind, StepRefuses: schedule.Refuses, StepTakesOver: schedule.TakesOver,
	StepFreezes: schedule.Freezes, StepThaws: schedule.Thaws, StepEvicts: schedule.Evicts, StepExpires: schedule.Expires,
	StepLoads: schedule.Loads, StepReconciles: schedule.Reconciles,
}

// line is the step without the counter.
func (st *WitnessStep) line() schedule.Step {
	line := schedule.Step{Kind: lineKinds[st.Kind], Client: st.Client, Wait: st.Wait, Lost: st.Lost,
		Setting: st.Setting, Key: st.Key, Answers: st.Returned, Wakes: st.Woken}
	switch st.Kind {
	case StepRestarts:
		line.Server = schedule.Redis
		if st.Server == "sql" {
			line.Server = schedule.SQL
		}
	case StepResubmit:
		line.Request = st.Command[0]
	case StepCommand, StepArrives, StepNever:
		asked := askedOf(st.Server == "sql", st.Conn, st.Command)
		line.Server, line.Conn, line.Words, line.Statement = asked.Server, asked.Conn, asked.Words, asked.Statement
		line.Reply, line.Fault = st.answer(), st.Fault
	case StepGranted, StepDeadlock:
		line.Server, line.Conn = schedule.SQL, st.Conn%connsPerOp
		line.Reply, line.Fault = st.answer(), st.Fault
	}
	return line
}

// askedOf is a command or statement as a schedule writes it.
func askedOf(sql bool, conn int, words []string) schedule.Step {
	if !sql {
		return schedule.Step{Server: schedule.Redis, Words: schedule.RedisWords(words)}
	}
	args := make([]string, len(words)-1)
	for i, w := range words[1:] {
		if args[i] = w[1:]; w == "n" {
			args[i] = schedule.Null
		}
	}
	return schedule.Step{Server: schedule.SQL, Conn: conn % connsPerOp, Statement: schedule.StatementText(words[0], args)}
}

func (st *WitnessStep) answer() schedule.Reply {
	return replyOf(st.Server == "sql", st.Reply, st.Blocked)
}

// replyOf is a server's reply as a schedule writes it; raw is empty where there
// was none.
func replyOf(sql bool, raw string, blocked bool) schedule.Reply {
	switch {
	case blocked:
		return schedule.Reply{Kind: schedule.Blocked}
	case raw == "":
		return schedule.Reply{}
	case sql:
		return sqlReply(raw)
	}
	r, _ := redisReply(raw)
	return r
}

// redisReply reads a well-formed RESP2 reply off the beginning of raw.
func redisReply(raw string) (r schedule.Reply, rest string) {
	head, rest, _ := strings.Cut(raw, "\r\n")
	body := head[1:]
	switch head[0] {
	case '+':
		return schedule.Reply{Kind: schedule.Status, Text: body}, rest
	case '-':
		code, _, _ := strings.Cut(body, " ")
		return schedule.Reply{Kind: schedule.Error, Text: code}, rest
	}
	n, err := strconv.ParseInt(body, 10, 64)
	switch {
	case err != nil:
		panic(fmt.Sprintf("explore: the engine replied %q", raw)) // engines parse what they get
	case head[0] == ':':
		return schedule.Reply{Kind: schedule.Int, Int: n}, rest
	case n < 0:
		return schedule.Reply{Kind: schedule.Nil}, rest
	case head[0] == '$':
		return schedule.Reply{Kind: schedule.Text, Text: rest[:n]}, rest[n+2:]
	}
	r.Kind = schedule.List
	for range n {
		var item schedule.Reply
		item, rest = redisReply(rest)
		r.Items = append(r.Items, item)
	}
	return r, rest
}

// sqlReply reads a wireReply.
func sqlReply(text string) schedule.Reply {
	reply := decodeReply(text)
	if reply.Err != nil {
		var pg *pgconn.PgError
		if errors.As(reply.Err, &pg) {
			return schedule.Reply{Kind: schedule.Error, Text: pg.Code}
		}
		panic(fmt.Sprintf("explore: a reply that no server gives: %v", reply.Err)) // see finishSQL
	}
	words := strings.Fields(reply.Tag)
	n, err := strconv.ParseInt(words[len(words)-1], 10, 64)
	switch {
	case reply.Columns == nil && err != nil:
		return schedule.Reply{Kind: schedule.Tag, Text: reply.Tag}
	case reply.Columns == nil:
		return schedule.Reply{Kind: schedule.Count, Int: n}
	}
	rows := schedule.Reply{Kind: schedule.Rows}
	for _, values := range reply.Rows {
		row := schedule.Reply{Kind: schedule.Row}
		for _, v := range values {
			row.Items = append(row.Items, sqlValueOf(v))
		}
		rows.Items = append(rows.Items, row)
	}
	return rows
}

func sqlValueOf(v any) schedule.Reply {
	switch v := v.(type) {
	case int64:
		return schedule.Reply{Kind: schedule.Int, Int: v}
	case bool:
		return schedule.Reply{Kind: schedule.Bool, Text: strconv.FormatBool(v)}
	case string:
		return schedule.Reply{Kind: schedule.Text, Text: v}
	}
	return schedule.Reply{Kind: schedule.Nil}
}
