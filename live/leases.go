package live

import (
	"context"
	"fmt"
	"strings"

	"stockproof/schemes"
)

// leaseKeys are the keys that the names of a schemes.Leaser mean.
func leaseKeys(ctx context.Context, env schemes.Env, names []string) (keys []string, err error) {
	for _, name := range names {
		if !strings.HasSuffix(name, "*") {
			keys = append(keys, name)
			continue
		}
		found, err := env.Redis.Keys(ctx, name).Result()
		if err != nil {
			return nil, fmt.Errorf("leases of %s: %w", name, err)
		}
		keys = append(keys, found...)
	}
	return keys, nil
}
