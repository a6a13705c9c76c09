package sqlsubset_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/engines/sqlsubset"
	"stockproof/engines/sqlsubset/fidelity"
	"stockproof/schemes"
)

// recorder writes a schedule down while the engine runs it, as explore does.
type recorder struct {
	t     *testing.T
	db    *sqlsubset.DB
	sched fidelity.Schedule
}

func record(t *testing.T, setup ...string) *recorder {
	return &recorder{t: t, db: newDB(t, schemes.Schema(), setup...), sched: fidelity.Schedule{DDL: schemes.Schema(), Setup: setup}}
}

func (r *recorder) note(op fidelity.Op, session int, step fidelity.Step, reply sqlsubset.Reply, status sqlsubset.Status) {
	r.sched.Events = append(r.sched.Events, fidelity.Event{Op: op, Session: session, SQL: step.SQL, Args: step.Args,
		Blocked: status == sqlsubset.Blocked, Reply: reply})
}

func (r *recorder) exec(session int, steps ...fidelity.Step) {
	for _, s := range steps {
		reply, status := r.db.Exec(session, parse(r.t, s.SQL), s.Args)
		r.note(fidelity.Exec, session, s, reply, status)
	}
}

func (r *recorder) resume(session int) {
	reply, status := r.db.Resume(session)
	r.note(fidelity.Resume, session, fidelity.Step{}, reply, status)
}

func TestRecordedScheduleReplaysOnARealServer(t *testing.T) {
	s := openServer(t)
	r := record(t, oneOfEach...)
	r.exec(0, dbVersionDeduct("r0", 0)[:3]...)
	r.exec(1, dbVersionDeduct("r1", 0)[:2]...)
	r.exec(0, commit)
	r.exec(2, do(seedLook, "a")) // sent before the engine resumes: the server has resumed already
	r.resume(1)
	r.exec(1, rollback)
	verdict, err := fidelity.Replay(context.Background(), s, r.sched)
	require.NoError(t, err)
	require.Equal(t, fidelity.Same, verdict)
}

func TestReplayWithADeathOfAWaitingClientIsTheSame(t *testing.T) {
	s := openServer(t)
	r := record(t, oneOfEach...)
	r.exec(0, begin, do(condTake, 1, "a"))
	r.exec(1, do(seedRestock, 10, "a"))
	require.True(t, r.db.Abandon(1))
	r.note(fidelity.Cut, 1, fidelity.Step{}, sqlsubset.Reply{}, sqlsubset.Done)
	r.exec(0, commit)
	r.resume(1)
	r.exec(0, do(seedRead, "a"))
	verdict, err := fidelity.Replay(context.Background(), s, r.sched)
	require.NoError(t, err)
	require.Equal(t, fidelity.Same, verdict)
}

func TestReplayTellsAnotherChoiceFromADifference(t *testing.T) {
	s := openServer(t)
	ctx := context.Background()
	// Two waiters, and only one unit for them: whoever is resumed second gets
	// nothing. The server keeps to the order of arrival here, 2 then 1.
	for _, c := range []struct {
		order []int
		want  fidelity.Verdict
	}{{[]int{2, 1}, fidelity.Same}, {[]int{1, 2}, fidelity.OtherChoice}} {
		r := record(t, "INSERT INTO goods VALUES ('a', 1, 0)")
		r.exec(0, begin, do(condTake, 1, "a"))
		r.exec(2, do(condTake, 1, "a"))
		r.exec(1, do(condTake, 1, "a"))
		r.exec(0, rollback)
		for _, id := range c.order {
			r.resume(id)
		}
		verdict, err := fidelity.Replay(ctx, s, r.sched)
		require.NoError(t, err)
		require.Equal(t, c.want, verdict, "order %v", c.order)
	}
}

func TestReplayFailsOnAFalseRecord(t *testing.T) {
	s := openServer(t)
	ctx := context.Background()
	r := record(t, oneOfEach...)
	r.exec(0, begin, do(condTake, 1, "a"))
	r.exec(1, do(condTake, 1, "a"))
	r.exec(0, commit)
	r.resume(1)
	verdict, err := fidelity.Replay(ctx, s, r.sched)
	require.NoError(t, err)
	require.Equal(t, fidelity.Same, verdict)
	for name, falsify := range map[string]func(e []fidelity.Event){
		"a reply":           func(e []fidelity.Event) { e[1].Reply.Tag = "UPDATE 0" },
		"a block":           func(e []fidelity.Event) { e[2].Blocked, e[2].Reply = false, e[1].Reply },
		"a block left out":  func(e []fidelity.Event) { e[1].Blocked = true },
		"a resumed reply":   func(e []fidelity.Event) { e[4].Reply.Tag = "UPDATE 0" },
		"a different error": func(e []fidelity.Event) { e[3].Reply.Err = &sqlsubset.ArgumentError{} },
	} {
		bad := r.sched
		bad.Events = append([]fidelity.Event(nil), r.sched.Events...)
		falsify(bad.Events)
		_, err := fidelity.Replay(ctx, s, bad)
		var record *fidelity.RecordError
		require.ErrorAs(t, err, &record, name)
	}
}

func TestReplayFailsWhereTheEngineIsNotThatOfTheServer(t *testing.T) {
	s := openServer(t)
	r := record(t, oneOfEach...)
	r.exec(0, begin, do(condTake, 1, "a"))
	r.exec(1, do(condTake, 1, "a"))
	r.exec(0, commit)
	r.resume(1)
	// The server has one unit more than the engine was told of.
	_, err := fidelity.Replay(context.Background(), s, r.sched)
	require.NoError(t, err)
	connect := realPostgres(t)
	conn, err := connect(context.Background())
	require.NoError(t, err)
	_, err = conn.Exec(context.Background(), `CREATE FUNCTION more() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.stock := NEW.stock + 1; RETURN NEW; END $$;
		CREATE TRIGGER more BEFORE INSERT ON stockproof_fidelity.goods FOR EACH ROW EXECUTE FUNCTION more()`)
	require.NoError(t, err)
	_, err = fidelity.Replay(context.Background(), s, r.sched)
	var different *fidelity.DifferenceError
	require.ErrorAs(t, err, &different)
	_, err = conn.Exec(context.Background(), "DROP FUNCTION more CASCADE")
	require.NoError(t, err)
	require.NoError(t, conn.Close(context.Background()))
}
