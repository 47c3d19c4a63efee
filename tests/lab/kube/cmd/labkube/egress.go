// Copyright: (c) 2026, The rdma.k8s authors
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
)

// egress is the proxy through which the API server reaches kubelets: a node's address exists only in its own network,
// where a forwarded port of this machine leads to.
type egress struct {
	table string
}

// runEgress serves HTTP CONNECT on a unix socket. The table is a JSON file, ADDRESS:PORT of a node to ADDRESS:PORT of
// this machine, read anew for each connection; what it does not name is refused.
func runEgress(arguments []string) error {
	flags := flag.NewFlagSet("egress", flag.ContinueOnError)
	socket := flags.String("socket", "", "where to listen")
	table := flags.String("table", "", "JSON file with the ways")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if err := os.Remove(*socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", *socket)
	if err != nil {
		return err
	}
	if err := os.Chmod(*socket, 0o600); err != nil {
		return err
	}
	proxy := &egress{*table}
	for {
		connection, err := listener.Accept()
		if err != nil {
			return err
		}
		go proxy.serve(connection)
	}
}

func (e *egress) way(wanted string) (string, error) {
	content, err := os.ReadFile(e.table)
	if err != nil {
		return "", err
	}
	ways := map[string]string{}
	if err := json.Unmarshal(content, &ways); err != nil {
		return "", err
	}
	target, found := ways[wanted]
	if !found {
		return "", fmt.Errorf("no way to %s", wanted)
	}
	return target, nil
}

func (e *egress) serve(client net.Conn) {
	defer client.Close()
	reader := bufio.NewReader(client)
	request, err := http.ReadRequest(reader)
	if err != nil || request.Method != http.MethodConnect {
		fmt.Fprint(client, "HTTP/1.1 405 Method Not Allowed\r\n\r\n")
		return
	}
	target, err := e.way(request.Host)
	var server net.Conn
	if err == nil {
		server, err = net.Dial("tcp", target)
	}
	if err != nil {
		log.Printf("%s: %v", request.Host, err)
		fmt.Fprint(client, "HTTP/1.1 502 Bad Gateway\r\n\r\n")
		return
	}
	defer server.Close()
	fmt.Fprint(client, "HTTP/1.1 200 Connection Established\r\n\r\n")
	var both sync.WaitGroup
	both.Add(2)
	pipe := func(to net.Conn, from io.Reader) {
		defer both.Done()
		_, _ = io.Copy(to, from)
		if half, ok := to.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}
	go pipe(server, reader)
	go pipe(client, server)
	both.Wait()
}
