// Package subjecttest is a subject for tests: a program that keeps every rule of
// the protocol but the one that its mode is about.
package subjecttest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"stockproof/live/role"
)

const roleName = "test-subject"

func init() {
	role.Register(roleName, func() int { return serve(os.Args[1]) })
}

// Command is the shell command that starts the subject in a mode. The binary that
// asks must call role.RunIfAsked.
func Command(mode string) string {
	return fmt.Sprintf("%s=%s exec '/proc/%d/exe' '%s'", role.Env, roleName, os.Getpid(), mode)
}

type request struct {
	ID  int64  `json:"id"`
	Op  string `json:"op"`
	SKU string `json:"sku"`
	Qty int64  `json:"qty"`
	Req string `json:"request"`
}

type subject struct {
	mode string
	db   *redis.Client
	in   *bufio.Reader
	busy chan struct{} // somebody was served
}

func serve(mode string) int {
	s := &subject{mode: mode, in: bufio.NewReader(os.Stdin), busy: make(chan struct{}, 1)}
	switch mode {
	case "never says hello":
		select {}
	case "says something else first":
		fmt.Println("starting up ...")
	case "dies before its hello":
		fmt.Fprintln(os.Stderr, "no configuration")
		return 3
	case "floods standard error":
		line := strings.Repeat("x", 1<<10) + "\n"
		for range 64 << 10 {
			fmt.Fprint(os.Stderr, line)
		}
	case "floods with one line":
		for {
			fmt.Print(strings.Repeat("x", 1<<16))
		}
	}
	options, err := redis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	options.MaxRetries = -1
	s.db = redis.NewClient(options)
	s.db.Ping(context.Background())
	hello := `{"protocol":"stockproof/subject/v1","name":"test","version":"1","stores":["redis"],"operations":["deduct","restock","read","orders"],"stock":{"key":"goods:{sku}","field":"stock"}}`
	if mode == "speaks another version" {
		hello = strings.Replace(hello, "subject/v1", "subject/v9", 1)
	}
	fmt.Println(hello)
	switch mode {
	case "floods standard output":
		for {
			fmt.Println(`{"id":1,"outcome":"sold"}`)
		}
	case "talks when nobody asked":
		go s.talk()
	}
	for {
		line, err := s.in.ReadString('\n')
		if err != nil {
			return s.end()
		}
		lines := []string{line}
		if mode == "answers out of order" && s.in.Buffered() > 0 {
			second, _ := s.in.ReadString('\n')
			lines = []string{second, line}
		}
		for _, l := range lines {
			s.answer(l)
		}
		select {
		case s.busy <- struct{}{}:
		default:
		}
	}
}

// talk says something whenever nobody asked for a while.
func (s *subject) talk() {
	for {
		select {
		case <-s.busy:
		case <-time.After(100 * time.Millisecond):
			fmt.Println("idle")
		}
	}
}

func (s *subject) end() int {
	switch s.mode {
	case "stays when its input ends":
		select {}
	case "ends with status 1":
		return 1
	case "leaves a child behind":
		child := exec.Command("sleep", "1000")
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := child.Start(); err != nil {
			return 1
		}
	}
	return 0
}

func (s *subject) answer(line string) {
	var req request
	if err := json.Unmarshal([]byte(line), &req); err != nil {
		os.Exit(1)
	}
	id := fmt.Sprint(req.ID)
	switch s.mode {
	case "answers with another id":
		id = fmt.Sprint(req.ID + 1)
	case "takes ids for floating point":
		id = fmt.Sprint(int64(float32(req.ID)))
	}
	what := s.do(req)
	fmt.Printf(`{"id":%s,%s}`+"\n", id, what)
}

func outcome(word string) string { return fmt.Sprintf("%q:%q", "outcome", word) }

func (s *subject) do(req request) string {
	ctx, key := context.Background(), "goods:"+req.SKU
	unknown := func(err error) string {
		if s.mode == "dies when its connection breaks" {
			os.Exit(1)
		}
		return outcome("unknown") + fmt.Sprintf(`,"error":%q`, err.Error())
	}
	if req.Qty < 1 && (req.Op == "deduct" || req.Op == "restock") && s.mode != "takes any quantity" {
		return outcome("failed")
	}
	switch req.Op {
	case "deduct":
		switch s.mode {
		case "never answers a deduct":
			select {}
		case "dies at a deduct":
			fmt.Fprintln(os.Stderr, "out of luck")
			os.Exit(7)
		}
		left, err := s.db.HGet(ctx, key, "stock").Int64()
		if err != nil {
			return unknown(err)
		}
		if left < req.Qty && s.mode != "oversells" {
			if s.mode == "has words of its own" {
				return outcome("sold-out")
			}
			return outcome("sold_out")
		}
		if err := s.db.HIncrBy(ctx, key, "stock", -req.Qty).Err(); err != nil {
			return unknown(err)
		}
		if s.mode != "forgets orders" {
			s.db.HSet(ctx, "orders:"+req.SKU, req.Req, req.Qty)
		}
		return outcome("sold")
	case "restock":
		if s.mode != "forgets restocks" {
			if err := s.db.HIncrBy(ctx, key, "stock", req.Qty).Err(); err != nil {
				return unknown(err)
			}
		}
		return outcome("ok")
	case "read":
		left, err := s.db.HGet(ctx, key, "stock").Int64()
		if err != nil {
			return outcome("failed")
		}
		if s.mode == "reads wrong" {
			left++
		}
		return outcome("value") + fmt.Sprintf(`,"value":%d`, left)
	case "orders":
		all, err := s.db.HGetAll(ctx, "orders:"+req.SKU).Result()
		if err != nil {
			return outcome("failed")
		}
		list := []string{}
		for request, qty := range all {
			list = append(list, fmt.Sprintf(`{"request":%q,"qty":%s}`, request, qty))
		}
		return outcome("orders") + `,"orders":[` + strings.Join(list, ",") + "]"
	}
	if s.mode == "does what it does not know" {
		return outcome("ok")
	}
	return outcome("failed")
}
