package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Slots is the number of hash slots of a Redis cluster.
const Slots = 16384

// Cluster is a Redis cluster of primaries without replicas: the i-th of n nodes
// has the i-th of n equal shares of the slots.
type Cluster struct{ Nodes []*Node }

// StartCluster starts a cluster of n nodes and returns when each of them says that
// the cluster is complete.
func (s *Set) StartCluster(ctx context.Context, n int) (*Cluster, error) {
	// The second half of the ports is for what the nodes tell each other.
	bus, err := freePorts(n)
	if err != nil {
		return nil, err
	}
	nodes, err := s.startNodes(ctx, "redis cluster", n, func(ports []int, i int) nodeConf {
		return nodeConf{lines: append(RedisOptions{}.conf(),
			"cluster-enabled yes", fmt.Sprintf("cluster-port %d", bus[i]), "cluster-announce-ip 127.0.0.1",
			"cluster-node-timeout 5000", "cluster-require-full-coverage yes")}
	})
	if err != nil {
		return nil, err
	}
	c := &Cluster{Nodes: nodes}
	if err := c.assemble(ctx, bus); err != nil {
		return nil, errors.Join(fmt.Errorf("redis cluster: %w", err), c.Close())
	}
	return c, nil
}

// assemble gives every node its slots and introduces it to the first.
func (c *Cluster) assemble(ctx context.Context, bus []int) error {
	n := len(c.Nodes)
	for i, node := range c.Nodes {
		err := node.ask(ctx, func(r *redis.Client) error {
			// Asked again after an answer that was lost, the node says that it has them.
			owned, err := r.ClusterInfo(ctx).Result()
			if err != nil || infoField(owned, "cluster_slots_assigned") != "0" {
				return err
			}
			return r.Do(ctx, "CLUSTER", "ADDSLOTSRANGE", i*Slots/n, (i+1)*Slots/n-1).Err()
		})
		if err != nil {
			return err
		}
	}
	_, port, err := net.SplitHostPort(c.Nodes[0].Addr)
	if err != nil {
		return err
	}
	for _, node := range c.Nodes[1:] {
		err := node.ask(ctx, func(r *redis.Client) error {
			return r.Do(ctx, "CLUSTER", "MEET", "127.0.0.1", port, strconv.Itoa(bus[0])).Err()
		})
		if err != nil {
			return err
		}
	}
	for _, node := range c.Nodes {
		err := node.ask(ctx, func(r *redis.Client) error {
			info, err := r.ClusterInfo(ctx).Result()
			if err == nil && (infoField(info, "cluster_state") != "ok" || infoField(info, "cluster_known_nodes") != strconv.Itoa(n)) {
				err = fmt.Errorf("%s is not complete: %s", node.Addr, info)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Addrs are the addresses of its nodes.
func (c *Cluster) Addrs() (addrs []string) {
	for _, n := range c.Nodes {
		addrs = append(addrs, n.Addr)
	}
	return addrs
}

// Close ends every node.
func (c *Cluster) Close() error { return closeNodes(c.Nodes) }

// Slot is the hash slot of a key: CRC16 (XMODEM) of what stands between the first
// { and the next }, if that is not empty, otherwise of all of it, modulo Slots
// (Redis cluster specification, "Key distribution model").
func (c *Cluster) Slot(key string) int64 {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if tag, _, closed := strings.Cut(key[open+1:], "}"); closed && tag != "" {
			key = tag
		}
	}
	var crc uint16
	for _, b := range []byte(key) {
		crc ^= uint16(b) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int64(crc % Slots)
}

// Owner is the node, from 0, that was given a slot.
func (c *Cluster) Owner(slot int64) int {
	for i := range c.Nodes {
		if slot < int64((i+1)*Slots/len(c.Nodes)) {
			return i
		}
	}
	panic(fmt.Sprintf("servers: there is no slot %d", slot))
}

// AskSlot asks a node for the slot of a key.
func (c *Cluster) AskSlot(ctx context.Context, key string) (slot int64, err error) {
	err = c.Nodes[0].ask(ctx, func(r *redis.Client) (err error) {
		slot, err = r.ClusterKeySlot(ctx, key).Result()
		return err
	})
	return slot, err
}
