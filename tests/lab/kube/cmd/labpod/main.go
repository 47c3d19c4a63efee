// Copyright: (c) 2026, The rdma.k8s authors
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Command labpod is the only program of the lab's test image: it is the pause container, and what test pods run.
package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const usage = `usage: labpod pause               wait until asked to end, collect orphans
       labpod run SECONDS [CODE]  end by itself with a code
       labpod stubborn SECONDS    go on for so long after being asked to end
       labpod serve PORT          answer HTTP: / is what "show" prints
       labpod show                interfaces, addresses and RDMA devices, as JSON
       labpod cat FILE...         print files`

func main() {
	arguments := os.Args[1:]
	if len(arguments) == 0 {
		arguments = []string{"pause"}
	}
	code, err := run(arguments[0], arguments[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "labpod:", err)
	}
	os.Exit(code)
}

func run(what string, words []string) (int, error) {
	switch what {
	case "pause":
		return pause(0)
	case "stubborn":
		seconds, err := number(words, 0, 0)
		if err != nil {
			return 2, err
		}
		return pause(time.Duration(seconds) * time.Second)
	case "run":
		seconds, err := number(words, 0, 0)
		if err != nil {
			return 2, err
		}
		code, err := number(words, 1, 0)
		if err != nil {
			return 2, err
		}
		fmt.Printf("labpod runs for %d s\n", seconds)
		ask := make(chan os.Signal, 1)
		signal.Notify(ask, syscall.SIGTERM, syscall.SIGINT)
		select {
		case <-ask:
			return 143, nil
		case <-time.After(time.Duration(seconds) * time.Second):
		}
		return code, nil
	case "serve":
		port, err := number(words, 0, 8080)
		if err != nil {
			return 2, err
		}
		http.HandleFunc("/", func(answer http.ResponseWriter, _ *http.Request) { show(answer) })
		return 1, http.ListenAndServe(fmt.Sprintf(":%d", port), nil)
	case "show":
		show(os.Stdout)
		return 0, nil
	case "cat":
		for _, path := range words {
			content, err := os.ReadFile(path)
			if err != nil {
				return 1, err
			}
			_, _ = os.Stdout.Write(content)
		}
		return 0, nil
	}
	return 2, fmt.Errorf("%s", usage)
}

func number(words []string, position, otherwise int) (int, error) {
	if len(words) <= position {
		return otherwise, nil
	}
	return strconv.Atoi(words[position])
}

// pause waits for a request to end, then for so long again. As the first process of a pod it collects orphans.
func pause(stubborn time.Duration) (int, error) {
	ask := make(chan os.Signal, 8)
	signal.Notify(ask, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	for received := range ask {
		if received != syscall.SIGCHLD {
			break
		}
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
	time.Sleep(stubborn)
	return 0, nil
}

// link is one network interface of this namespace.
type link struct {
	Name      string   `json:"name"`
	MAC       string   `json:"mac"`
	MTU       int      `json:"mtu"`
	Up        bool     `json:"up"`
	Addresses []string `json:"addresses"`
}

func show(out interface{ Write([]byte) (int, error) }) {
	found := struct {
		Links   []link   `json:"links"`
		RDMA    []string `json:"rdma"`
		Devices []string `json:"devices"`
		Env     []string `json:"env"`
	}{Links: []link{}, RDMA: names("/sys/class/infiniband/*"), Devices: names("/dev/infiniband/*")}
	interfaces, _ := net.Interfaces()
	for _, one := range interfaces {
		entry := link{one.Name, one.HardwareAddr.String(), one.MTU, one.Flags&net.FlagUp != 0, []string{}}
		addresses, _ := one.Addrs()
		for _, address := range addresses {
			entry.Addresses = append(entry.Addresses, address.String())
		}
		found.Links = append(found.Links, entry)
	}
	for _, variable := range os.Environ() {
		if strings.HasPrefix(variable, "KUBERNETES_") {
			found.Env = append(found.Env, variable)
		}
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(found)
}

func names(pattern string) []string {
	found := []string{}
	paths, _ := filepath.Glob(pattern)
	for _, path := range paths {
		found = append(found, filepath.Base(path))
	}
	return found
}
