// A kfake cluster of one broker: prints its address, then serves until it is killed.
package main

import (
	"fmt"
	"log"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(0))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(cluster.ListenAddrs()[0])
	select {}
}
