package servers

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// askEvery is how long to wait before a server that has said it is ready, but does
// not answer yet, is asked again.
const askEvery = 50 * time.Millisecond

// await waits until the server says in its log that it is ready and then really
// answers. An answer of the wrong kind is final.
func await(ctx context.Context, srv *server, ask func(context.Context) error) error {
	if err := srv.awaitReady(ctx); err != nil {
		return err
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	var last error
	for {
		select {
		case <-timer.C:
		case <-srv.ended:
			return errors.Join(srv.died(), last)
		case <-ctx.Done():
			return fmt.Errorf("no answer: %w", errors.Join(context.Cause(ctx), last))
		}
		last = ask(ctx)
		if last == nil || errors.Is(last, ErrNotDurable) || errors.Is(last, ErrWrongServer) {
			return last
		}
		timer.Reset(askEvery)
	}
}

// checkRedis asks a Redis server for its version. When pid is not 0 the server must
// be that process: the port may have been taken by another program meanwhile.
func checkRedis(ctx context.Context, addr string, pid int) (version string, err error) {
	c := redis.NewClient(&redis.Options{
		Addr: addr, MaxRetries: -1, PoolSize: 1, DialTimeout: 5 * time.Second,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	defer c.Close()
	info, err := c.Info(ctx, "server").Result()
	if err != nil {
		return "", err
	}
	if got := infoField(info, "process_id"); pid != 0 && got != strconv.Itoa(pid) {
		return "", fmt.Errorf("%w: %s is process %s, not %d", ErrWrongServer, addr, got, pid)
	}
	version = infoField(info, "redis_version")
	if version == "" {
		return "", fmt.Errorf("%w: %s names no redis_version", ErrWrongServer, addr)
	}
	return version, nil
}

// infoField finds name:value in an answer to INFO.
func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// checkPostgres asks a PostgreSQL server for its version and refuses one that may
// forget an acknowledged commit.
func checkPostgres(ctx context.Context, dsn string) (version string, err error) {
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return "", err
	}
	defer c.Close(ctx)
	for _, setting := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
		var value string
		if err := c.QueryRow(ctx, "SHOW "+setting).Scan(&value); err != nil {
			return "", err
		}
		if value != "on" {
			return "", fmt.Errorf("%w: %s is %s", ErrNotDurable, setting, value)
		}
	}
	if err := c.QueryRow(ctx, "SHOW server_version").Scan(&version); err != nil {
		return "", err
	}
	return version, nil
}

// cheapenLogin stores the superuser's password with one round of SCRAM instead of
// 4,096. The rounds are there to slow down guessing a password somebody thought of;
// this one is 128 random bits, and every client of every run logs in with it.
func cheapenLogin(ctx context.Context, dsn, password string) error {
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	verifier, err := scramVerifier(password)
	if err != nil {
		return err
	}
	// Neither can hold a quote: the user is a constant, the verifier is base64.
	_, err = c.Exec(ctx, fmt.Sprintf(`ALTER ROLE %s PASSWORD '%s'`, postgresUser, verifier))
	return err
}

// scramVerifier is what PostgreSQL keeps of a password (RFC 5803, and the server's
// documentation of pg_authid), with one round.
func scramVerifier(password string) (string, error) {
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // never fails
	salted, err := pbkdf2.Key(sha256.New, password, salt, 1, sha256.Size)
	if err != nil {
		return "", err
	}
	mac := func(text string) []byte {
		h := hmac.New(sha256.New, salted)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	stored := sha256.Sum256(mac("Client Key"))
	b64 := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$1:%s$%s:%s", b64(salt), b64(stored[:]), b64(mac("Server Key"))), nil
}
