// Copyright: (c) 2026, The rdma.k8s authors
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Command labkube holds the lab's own parts of a cluster: certificates, the way from the API server to the kubelets,
// and simulated nodes.
package main

import (
	"fmt"
	"os"
)

// version is set by the build to the version of Kubernetes.
var version = "v0.0.0"

var commands = map[string]func([]string) error{
	"certs":  runCerts,
	"egress": runEgress,
	"sim":    runSim,
}

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: labkube certs|egress|sim OPTIONS")
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "labkube %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}
