// A burst by asynq: see ../README.md for what it is told and what it says.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
)

const publishers = 64

func number(at int) int {
	n, err := strconv.Atoi(os.Args[at])
	if err != nil {
		log.Fatal(err)
	}
	return n
}

func main() {
	redis, err := asynq.ParseRedisURI(strings.TrimSuffix(os.Args[1], "/"))
	if err != nil {
		log.Fatal(err)
	}
	jobs, slots, lead := number(2), number(3), number(4)
	client := asynq.NewClient(redis)
	server := asynq.NewServer(redis, asynq.Config{
		Concurrency:              slots,
		DelayedTaskCheckInterval: 100 * time.Millisecond, // 5 s by default
		TaskCheckInterval:        100 * time.Millisecond, // 1 s by default
		LogLevel:                 asynq.ErrorLevel,
	})
	var count atomic.Int64
	finished := make(chan struct{})
	err = server.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		if count.Add(1) == int64(jobs) {
			close(finished)
		}
		return nil
	}))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("ready")

	begun := time.Now()
	// It knows whole seconds only.
	due := begun.Add(time.Duration(lead) * time.Millisecond).Truncate(time.Second).Add(time.Second)
	var publishing sync.WaitGroup
	for publisher := range publishers {
		publishing.Add(1)
		go func() {
			defer publishing.Done()
			for n := publisher; n < jobs; n += publishers {
				body := fmt.Sprintf(`{"order":%010d,"text":"%s"}`, n, strings.Repeat("x", 70))
				if _, err := client.Enqueue(asynq.NewTask("job", []byte(body)), asynq.ProcessAt(due)); err != nil {
					log.Fatal(err)
				}
			}
		}()
	}
	publishing.Wait()
	published := time.Now()
	fmt.Printf("published %f %t\n", published.Sub(begun).Seconds(), due.After(published))
	<-finished
	fmt.Printf("done %f\n", time.Since(due).Seconds())
}
