package redisstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestExec(t *testing.T) {
	m, err := NewMini()
	require.NoError(t, err)
	defer m.Close()
	r, err := m.Exec(State{}, []string{"HSET", "goods:1", "stock", "1"})
	require.NoError(t, err)
	require.Equal(t, ":1\r\n", r.Reply)
	script := "redis.call('HINCRBY', KEYS[1], 'stock', -1); redis.call('PEXPIRE', KEYS[1], 300); redis.call('PUBLISH', 'ch', 'x'); return nil"
	r, err = m.Exec(r.State, []string{"EVALSHA", SHA1(script), "1", "goods:1"})
	require.NoError(t, err)
	require.Contains(t, r.Reply, "NOSCRIPT")
	r, err = m.Exec(r.State, []string{"EVAL", script, "1", "goods:1"})
	require.NoError(t, err)
	require.Equal(t, "$-1\r\n", r.Reply)
	require.Equal(t, []Message{{"ch", "x"}}, r.Messages)
	require.Equal(t, 300*time.Millisecond, r.State.Keys[0].TTL)
	require.Len(t, r.State.Scripts, 1)
	t.Log(r.State.Encode())
	require.Empty(t, r.State.After(300*time.Millisecond).Keys)
}
func BenchmarkMini(b *testing.B) {
	m, _ := NewMini()
	defer m.Close()
	r, _ := m.Exec(State{}, []string{"HSET", "goods:1", "stock", "1"})
	for b.Loop() {
		m.Exec(r.State, []string{"HINCRBY", "goods:1", "stock", "-1"})
	}
}
