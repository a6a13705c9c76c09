package cost

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"

	"stockproof/model"
	"stockproof/schemes"
)

// rawScript is slowScript of 0 ms without a client library: bytes that were made
// once, over a connection for each client. What it reaches is what the load driver
// itself can do; what lua-string reaches below that is the library's.
type rawScript struct {
	slowScript
	conns *sync.Map // of each client, by its name and the article
}

type rawConn struct {
	net.Conn
	replies *bufio.Reader
	request []byte
}

func newRaw() schemes.Entry {
	return schemes.Entry{Scheme: rawScript{conns: new(sync.Map)}, Stores: schemes.Stores{Redis: true}}
}

func (s rawScript) Deduct(_ context.Context, env schemes.Env, req schemes.Request) (model.Outcome, error) {
	c, err := s.conn(env, req)
	if err != nil {
		return model.Failed, err
	}
	if _, err := c.Write(c.request); err != nil {
		return model.Unknown, err
	}
	reply, err := c.replies.ReadSlice('\n')
	if err != nil {
		return model.Unknown, err
	}
	switch string(reply) {
	case ":1\r\n":
		return model.Sold, nil
	case ":0\r\n":
		return model.SoldOut, nil
	}
	return model.Unknown, fmt.Errorf("reply %q", reply)
}

// conn is the connection of a client, with its request for a unit.
func (s rawScript) conn(env schemes.Env, req schemes.Request) (*rawConn, error) {
	name := env.Client + " " + req.SKU
	if c, known := s.conns.Load(name); known {
		return c.(*rawConn), nil
	}
	conn, err := net.Dial("tcp", env.Redis.Options().Addr)
	if err != nil {
		return nil, err
	}
	c := &rawConn{Conn: conn, replies: bufio.NewReader(conn)}
	words := []string{"EVALSHA", slowTake.Hash(), "1", slowKey(req.SKU), strconv.FormatInt(req.Qty, 10), "0"}
	c.request = fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, w := range words {
		c.request = fmt.Appendf(c.request, "$%d\r\n%s\r\n", len(w), w)
	}
	s.conns.Store(name, c)
	return c, nil
}

// hangUp ends the connections.
func (s rawScript) hangUp() {
	s.conns.Range(func(name, c any) bool {
		c.(*rawConn).Close()
		s.conns.Delete(name)
		return true
	})
}
