package explore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/engines/redisstore"
	"stockproof/faults"
	"stockproof/faults/schedule"
	"stockproof/schemes"
)

// crowd is a schedule of more clients and operations than a search has room
// for: round after round everybody buys one. Of a database, every buyer has
// opened a transaction before the first commits, so all others wait for the row.
func crowd(scheme string, clients, rounds int) string {
	var header, steps, outcome, orders strings.Builder
	fmt.Fprintf(&header, "schedule v1\nscheme   %s\nconfig   lease=300ms wait=100ms retry=100ms retries=off\nstock    goods:1001 %d\n", scheme, 100)
	name := faults.ClientName
	for c := range clients {
		fmt.Fprintf(&header, "client   %s deduct 1%s\n", name(c), strings.Repeat(", deduct 1", rounds-1))
	}
	left, version := 100, 0
	for n := range rounds {
		answered := func(c int, what string) string {
			if rounds > 1 {
				return fmt.Sprintf("%s.%d=%s", name(c), n+1, what)
			}
			return name(c) + "=" + what
		}
		if scheme == "hincrby" {
			for c := range clients {
				left--
				fmt.Fprintf(&steps, "%s  HINCRBY goods:1001 stock -1 => %d  ; stock %d, %s\n", name(c), left, left, answered(c, "sold"))
			}
			continue
		}
		update := fmt.Sprintf("SQL UPDATE goods SET stock = stock - 1, version = version + 1 WHERE sku = 1001 AND version = %d AND stock >= 1", version)
		for c := range clients {
			fmt.Fprintf(&steps, "%s  SQL SELECT stock, version FROM goods WHERE sku = 1001 => (%d, %d)\n%[1]s  SQL begin => BEGIN\n", name(c), left, version)
		}
		for c := range clients {
			reply := "blocked"
			if c == 0 {
				reply = "1 row"
			}
			fmt.Fprintf(&steps, "%s  %s => %s\n", name(c), update, reply)
		}
		left, version = left-1, version+1
		fmt.Fprintf(&steps, "a  SQL INSERT INTO orders (request_id, sku, buyer, qty) VALUES ('a.%d', 1001, 'a', 1) => 1 row\n", n+1)
		fmt.Fprintf(&steps, "a  SQL commit => COMMIT  ; stock %d, %s\n", left, answered(0, "sold"))
		for c := 1; c < clients; c++ {
			fmt.Fprintf(&steps, "%s  SQL goes on => 0 rows\n%[1]s  SQL rollback => ROLLBACK  ; %s\n", name(c), answered(c, "busy"))
		}
		fmt.Fprintf(&orders, " a.%d=1", n+1)
	}
	for n := range rounds {
		for c := range clients {
			what := "sold"
			if scheme != "hincrby" && c > 0 {
				what = "busy"
			}
			fmt.Fprintf(&outcome, " %s.%d=%s", name(c), n+1, what)
		}
	}
	end := fmt.Sprintf("---\noutcome %s\nstock    %d\n", outcome.String(), left)
	unsold := fmt.Sprintf("unsold=%d", min(left, (clients-1)*rounds))
	if scheme == "hincrby" {
		unsold = "nothing"
	} else {
		end += "orders  " + orders.String() + "\n"
	}
	return header.String() + "---\n" + steps.String() + end + "violates " + unsold + "\n"
}

func TestAReplayHasRoomForMoreThanASearch(t *testing.T) {
	engine, err := redisstore.NewMini()
	require.NoError(t, err)
	t.Cleanup(func() { engine.Close() })
	for _, scheme := range []string{"hincrby", "db-version"} {
		for _, size := range [][2]int{{maxSlots + 2, 2}, {2, maxOps + 2}, {maxLocals + 3, maxOps + 3}} {
			t.Run(fmt.Sprintf("%s/%d clients, %d operations", scheme, size[0], size[1]), func(t *testing.T) {
				text := crowd(scheme, size[0], size[1])
				s, err := schedule.Parse(strings.NewReader(text), "crowd")
				require.NoError(t, err, text)
				e, err := schemes.ByName(scheme)
				require.NoError(t, err)
				require.NoError(t, Replay(e, s, engine), text)

				// Its last answer is compared as well as its first.
				altered := strings.Replace(text, fmt.Sprintf("; %s.%d=", faults.ClientName(size[0]-1), size[1]), "; wakes a, "+fmt.Sprintf("%s.%d=", faults.ClientName(size[0]-1), size[1]), 1)
				altered = strings.Replace(altered, fmt.Sprintf(", %s.%d=sold", faults.ClientName(size[0]-1), size[1]), "", 1)
				require.NotEqual(t, text, altered)
				s, err = schedule.Parse(strings.NewReader(altered), "altered")
				require.NoError(t, err)
				var diverged *schedule.DivergenceError
				require.ErrorAs(t, Replay(e, s, engine), &diverged)
				require.Greater(t, diverged.Line, strings.Count(text[:strings.Index(text, "---")], "\n")+1)
			})
		}
	}
	long := &schedule.Schedule{SKU: sku}
	for range 2 {
		long.Clients = append(long.Clients, schedule.Client{Calls: make([]schedule.Call, mostReplayed)})
	}
	e, err := schemes.ByName("naive")
	require.NoError(t, err)
	require.ErrorIs(t, Replay(e, long, engine), ErrConfig)
}
