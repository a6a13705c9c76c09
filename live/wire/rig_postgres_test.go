package wire

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"
)

type encoder interface {
	Encode([]byte) ([]byte, error)
}

func encode[M encoder](ms ...M) (b []byte) {
	for _, m := range ms {
		var err error
		if b, err = m.Encode(b); err != nil {
			panic(err)
		}
	}
	return b
}

func int8Bytes(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// A session of a client that prepares, executes, fails in a batch, pings, and
// is told things it did not ask for.
var (
	sessionAsked = string(encode[pgproto3.FrontendMessage](
		&pgproto3.SSLRequest{},
		&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30, Parameters: map[string]string{"user": "u"}},
		&pgproto3.PasswordMessage{Password: "p"},
		&pgproto3.Query{String: "begin"},
		&pgproto3.Parse{Name: "s", Query: "select stock, name from goods where id = $1", ParameterOIDs: []uint32{20}}, &pgproto3.Describe{ObjectType: 'S', Name: "s"}, &pgproto3.Sync{},
		&pgproto3.Bind{PreparedStatement: "s", ParameterFormatCodes: []int16{1}, Parameters: [][]byte{int8Bytes(7)}, ResultFormatCodes: []int16{1, 0}},
		&pgproto3.Execute{}, &pgproto3.Sync{},
		&pgproto3.Query{String: "-- ping"},
		&pgproto3.Parse{Query: "update a"}, &pgproto3.Bind{}, &pgproto3.Execute{},
		&pgproto3.Parse{Query: "update b"}, &pgproto3.Bind{}, &pgproto3.Describe{ObjectType: 'P'}, &pgproto3.Execute{},
		&pgproto3.Parse{Name: "s", Query: "update c"}, &pgproto3.Bind{PreparedStatement: "s"}, &pgproto3.Execute{}, &pgproto3.Sync{},
		&pgproto3.Bind{PreparedStatement: "s", Parameters: [][]byte{nil}}, &pgproto3.Execute{}, &pgproto3.Sync{},
		&pgproto3.Close{ObjectType: 'S', Name: "s"}, &pgproto3.Sync{},
		&pgproto3.Terminate{},
	))
	idle, within   = &pgproto3.ReadyForQuery{TxStatus: 'I'}, &pgproto3.ReadyForQuery{TxStatus: 'T'}
	columns        = []pgproto3.FieldDescription{{Name: []byte("stock"), DataTypeOID: 20}, {Name: []byte("name"), DataTypeOID: 25}}
	done           = func(tag string) *pgproto3.CommandComplete { return &pgproto3.CommandComplete{CommandTag: []byte(tag)} }
	sessionAnswers = "N" + string(encode[pgproto3.BackendMessage](
		&pgproto3.AuthenticationCleartextPassword{}, &pgproto3.AuthenticationOk{}, &pgproto3.ParameterStatus{Name: "a", Value: "b"},
		&pgproto3.BackendKeyData{ProcessID: 4711, SecretKey: []byte("1234")}, idle,
		done("BEGIN"), within,
		&pgproto3.ParseComplete{}, &pgproto3.ParameterDescription{ParameterOIDs: []uint32{20}}, &pgproto3.RowDescription{Fields: columns}, within,
		&pgproto3.NotificationResponse{PID: 1, Channel: "c"},
		&pgproto3.BindComplete{}, &pgproto3.NoticeResponse{Severity: "NOTICE"},
		&pgproto3.DataRow{Values: [][]byte{int8Bytes(3), []byte("3")}}, &pgproto3.DataRow{Values: [][]byte{int8Bytes(-1), nil}}, done("SELECT 2"), within,
		&pgproto3.EmptyQueryResponse{}, within,
		&pgproto3.ParseComplete{}, &pgproto3.BindComplete{}, done("UPDATE 1"),
		&pgproto3.ParseComplete{}, &pgproto3.ErrorResponse{Severity: "ERROR", Code: "40001", Message: "no"}, within,
		&pgproto3.BindComplete{}, done("SELECT 0"), within,
		&pgproto3.CloseComplete{}, within,
		&pgproto3.ErrorResponse{Severity: "FATAL", Code: "57P01", Message: "going"},
	))
)

func TestAPostgresSessionIsUnderstoodInPiecesOfAnySize(t *testing.T) {
	for size := 1; size < 120; size++ {
		g := &recorder{}
		r := newRig(Postgres, g)
		// The client waits for the end of start-up before it asks anything.
		start := strings.Index(sessionAsked, "begin") - 5
		feed(r.c.up.in, []byte(sessionAsked[:start]), size)
		r.sent(start)
		ready := strings.Index(sessionAnswers, "BEGIN") - 5
		feed(r.c.down.in, []byte(sessionAnswers[:ready]), size)
		r.heard(ready)
		feed(r.c.up.in, []byte(sessionAsked[start:]), size)
		r.sent(len(sessionAsked))
		feed(r.c.down.in, []byte(sessionAnswers[ready:]), size)
		r.answered()
		require.Empty(t, r.p.Errors())
		require.Equal(t, sessionAsked, r.toServer.String(), "bytes to the server")
		require.Equal(t, sessionAnswers, r.toClient.String(), "bytes to the client")
		var steps, texts []string
		for _, e := range g.seen() {
			switch e.kind {
			case "request":
				require.EqualValues(t, 4711, e.step.BackendPID)
				steps = append(steps, e.step.String())
			case "reply":
				texts = append(texts, e.reply.Text)
			}
		}
		require.Equal(t, []string{"client 7 step 1 postgres: begin", "client 7 step 2 postgres: select stock, name from goods where id = $1 [7]",
			"client 7 step 3 postgres: update a", "client 7 step 4 postgres: update b", "client 7 step 5 postgres: update c"}, steps[:5])
		require.Equal(t, []string{"BEGIN", `row (3, "3"); row (-1, NULL)`, "UPDATE 1", "ERROR 40001 no", "not executed after ERROR 40001 no", "no rows"}, texts)
		g.requireEachEndsOnce(t)
	}
}

func TestWhatPostgresSidesMustNotSay(t *testing.T) {
	header := func(kind byte, n uint32) string { return string(binary.BigEndian.AppendUint32([]byte{kind}, n)) }
	startup := sessionAsked[8 : strings.Index(sessionAsked, "begin")-5]
	for _, asked := range []string{"\x00\x00\x00\x07\x00\x00\x00\x00", "\xff\xff\xff\xff1234", "\x00\x00\x00\x09\x00\x02\x00\x00x", startup + header('Q', 3),
		startup + header('Q', 1<<30), startup + header('d', 4), startup + header('F', 4), startup + header('?', 4), startup + header('B', 4), startup + header('Q', 5) + "x"} {
		r := newRig(Postgres, &recorder{})
		feed(r.c.up.in, []byte(asked))
		r.asked()
		r.answered()
		require.Len(t, r.p.Errors(), 1, "%q", asked)
		require.ErrorIs(t, r.p.Errors()[0], ErrMalformed)
	}
	for _, answer := range []string{header('Z', 3), header('D', 4), header('?', 4), string(encode[pgproto3.BackendMessage](idle, idle)), string(encode[pgproto3.BackendMessage](idle, done("UPDATE 1")))} {
		r := newRig(Postgres, &recorder{})
		feed(r.c.up.in, []byte(startup))
		r.sent(len(startup))
		feed(r.c.down.in, []byte(answer))
		r.finish()
		require.Len(t, r.p.Errors(), 1, "%q", answer)
		require.ErrorIs(t, r.p.Errors()[0], ErrMalformed)
	}
	r := newRig(Postgres, &recorder{})
	feed(r.c.up.in, []byte(sessionAsked[:8]))
	r.sent(8)
	feed(r.c.down.in, []byte("S"))
	r.finish()
	require.ErrorContains(t, r.p.Errors()[0], "encrypt")
}

func TestACommentAloneIsBlank(t *testing.T) {
	for sql, want := range map[string]bool{"": true, "-- ping": true, " ;; ": true, "/* a /* b */ c */": true, "-- a\n;": true, "-- a\nselect 1": false,
		"/* open": false, "select 1 -- x": false, "/* a */ /* b */ x": false, "-": false} {
		require.Equal(t, want, blank(sql), "%q", sql)
	}
}

// FuzzPostgresSession: whatever either side says, in whatever pieces, both
// hear a prefix of it, the same for all pieces, and nobody panics.
func FuzzPostgresSession(f *testing.F) {
	f.Add([]byte(sessionAsked), []byte(sessionAnswers), uint8(3))
	f.Add([]byte(sessionAsked[8:]), []byte(sessionAnswers[1:]), uint8(7))
	f.Fuzz(func(t *testing.T, asked, answers []byte, size uint8) {
		play := func(sizes ...int) (*rig, *recorder) {
			g := &recorder{}
			r := newRig(Postgres, g)
			feed(r.c.up.in, asked, sizes...)
			r.asked()
			feed(r.c.down.in, answers, sizes...)
			r.answered()
			return r, g
		}
		whole, g := play()
		require.True(t, strings.HasPrefix(string(asked), whole.toServer.String()))
		require.True(t, strings.HasPrefix(string(answers), whole.toClient.String()))
		g.requireEachEndsOnce(t)
		pieces, h := play(int(size), 1)
		require.Equal(t, whole.toServer.String(), pieces.toServer.String())
		require.Equal(t, requests(g), requests(h))
		h.requireEachEndsOnce(t)
	})
}

// FuzzPostgresAnswers: a client that stays hears exactly what the server said
// as far as it was understood, whatever the pieces.
func FuzzPostgresAnswers(f *testing.F) {
	f.Add([]byte(sessionAnswers), uint8(3))
	asked := sessionAsked[:strings.LastIndex(sessionAsked, "X")]
	f.Fuzz(func(t *testing.T, answers []byte, size uint8) {
		play := func(sizes ...int) (*rig, *recorder) {
			g := &recorder{}
			r := newRig(Postgres, g)
			feed(r.c.up.in, []byte(asked))
			r.sent(len(asked))
			feed(r.c.down.in, answers, sizes...)
			r.answered()
			return r, g
		}
		whole, g := play()
		require.True(t, strings.HasPrefix(string(answers), whole.toClient.String()))
		g.requireEachEndsOnce(t)
		pieces, h := play(int(size), 1)
		require.Equal(t, whole.toClient.String(), pieces.toClient.String())
		require.Equal(t, g.lines(), h.lines())
	})
}
