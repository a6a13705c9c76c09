package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Follows waits until a replica's link to its primary is up, as both see it, and
// has carried something. A primary that calls its replica online still sends it
// nothing before that has acknowledged the first copy; one that is frozen in
// between has missed all writes. PUBLISH is sent on and changes nothing.
func (n *Node) Follows(ctx context.Context, primary *Node) error {
	err := n.ask(ctx, func(c *redis.Client) error {
		info, err := c.InfoMap(ctx, "replication").Result()
		if err == nil && info["Replication"]["master_link_status"] != "up" {
			err = fmt.Errorf("its link is %s", info["Replication"]["master_link_status"])
		}
		return err
	})
	if err != nil {
		return err
	}
	return primary.ask(ctx, func(c *redis.Client) error {
		conn := c.Conn() // WAIT is about the writes of its connection
		defer conn.Close()
		if err := conn.Publish(ctx, "stockproof:follows", "").Err(); err != nil {
			return err
		}
		n, err := conn.Wait(ctx, 1, time.Second).Result()
		if err == nil && n == 0 {
			err = errors.New("its primary has sent it nothing")
		}
		return err
	})
}

// Leads waits until a node says that it is a primary.
func (n *Node) Leads(ctx context.Context) error {
	return n.ask(ctx, func(c *redis.Client) error {
		info, err := c.InfoMap(ctx, "replication").Result()
		if err == nil && info["Replication"]["role"] != "master" {
			err = fmt.Errorf("its role is %s", info["Replication"]["role"])
		}
		return err
	})
}

// CutLink leaves a replica with what it has, once it has everything that its
// primary has executed so far, and returns when neither end has a link any more.
// A replica that is only frozen is no replica that lacks writes: the kernel keeps
// what the primary sends, and it catches up before it can be promoted.
func (n *Node) CutLink(ctx context.Context, primary *Node) error {
	sent, err := primary.number(ctx, "replication", "master_repl_offset")
	if err != nil {
		return err
	}
	err = n.ask(ctx, func(*redis.Client) error {
		got, err := n.number(ctx, "replication", "slave_repl_offset")
		if err == nil && got < sent {
			err = fmt.Errorf("it has %d of %d bytes", got, sent)
		}
		return err
	})
	if err != nil {
		return err
	}
	// A primary that nobody can reach: the link is down, and it knows.
	if err := n.ask(ctx, func(c *redis.Client) error { return c.Do(ctx, "REPLICAOF", "127.0.0.1", "1").Err() }); err != nil {
		return err
	}
	return primary.ask(ctx, func(*redis.Client) error {
		left, err := primary.number(ctx, "replication", "connected_slaves")
		if err == nil && left != 0 {
			err = fmt.Errorf("%d replicas are connected", left)
		}
		return err
	})
}

// Promote makes a replica a primary.
func (n *Node) Promote(ctx context.Context) error {
	if err := n.ask(ctx, func(c *redis.Client) error { return c.Do(ctx, "REPLICAOF", "NO", "ONE").Err() }); err != nil {
		return err
	}
	return n.Leads(ctx)
}

// Rejoin makes a node a replica of another, whose data replace what it has, and
// waits until they have.
func (n *Node) Rejoin(ctx context.Context, primary *Node) error {
	to := hostPort(primary.Addr)
	if err := n.ask(ctx, func(c *redis.Client) error { return c.Do(ctx, "REPLICAOF", to[0], to[1]).Err() }); err != nil {
		return err
	}
	return n.Follows(ctx, primary)
}

// number is a number of INFO.
func (n *Node) number(ctx context.Context, section, field string) (value int64, err error) {
	err = n.ask(ctx, func(c *redis.Client) error {
		info, err := c.Info(ctx, section).Result()
		if err != nil {
			return err
		}
		value, err = strconv.ParseInt(infoField(info, field), 10, 64)
		return err
	})
	return value, err
}

// hostPort is the two halves of an address of ours.
func hostPort(addr string) []string {
	host, port, _ := net.SplitHostPort(addr) // made by JoinHostPort
	return []string{host, port}
}
