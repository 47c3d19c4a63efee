// Copyright: (c) 2026, The rdma.k8s authors
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"flag"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// lifetime of every certificate: a lab that is forgotten for longer has to be started anew.
const lifetime = 30 * 24 * time.Hour

// authority is a certificate authority that signs others.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// subject says who a certificate is for. Hosts make it fit for a server.
type subject struct {
	name   string
	groups []string
	hosts  []string
}

// runCerts writes all certificates and keys of one cluster into a directory.
func runCerts(arguments []string) error {
	flags := flag.NewFlagSet("certs", flag.ContinueOnError)
	directory := flags.String("directory", "", "where the files go")
	hosts := flags.String("hosts", "127.0.0.1", "names and addresses of the API server, with commas")
	nodes := flags.String("nodes", "", "NAME=ADDRESS of the nodes, with commas")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if *directory == "" {
		return fmt.Errorf("--directory is missing")
	}
	cluster, err := newAuthority(*directory, "ca", "rdma-lab")
	if err != nil {
		return err
	}
	// etcd trusts an authority of its own, so that no certificate of the cluster opens it.
	etcd, err := newAuthority(*directory, "etcd-ca", "rdma-lab-etcd")
	if err != nil {
		return err
	}
	if err := etcd.issue(*directory, "etcd", subject{name: "etcd", hosts: []string{"127.0.0.1", "localhost"}}); err != nil {
		return err
	}
	if err := etcd.issue(*directory, "etcd-client", subject{name: "kube-apiserver"}); err != nil {
		return err
	}
	wanted := map[string]subject{
		"apiserver":          {name: "kube-apiserver", hosts: strings.Split(*hosts, ",")},
		"apiserver-kubelet":  {name: "kube-apiserver-kubelet-client", groups: []string{"system:masters"}},
		"admin":              {name: "lab-admin", groups: []string{"system:masters"}},
		"controller-manager": {name: "system:kube-controller-manager"},
		"scheduler":          {name: "system:kube-scheduler"},
		"simulator":          {name: "lab-simulator", groups: []string{"system:masters"}},
	}
	for _, entry := range strings.FieldsFunc(*nodes, func(r rune) bool { return r == ',' }) {
		name, address, found := strings.Cut(entry, "=")
		if !found {
			return fmt.Errorf("--nodes %s: NAME=ADDRESS is wanted", entry)
		}
		wanted["node-"+name] = subject{
			name: "system:node:" + name, groups: []string{"system:nodes"}, hosts: []string{name, address},
		}
	}
	for file, who := range wanted {
		if err := cluster.issue(*directory, file, who); err != nil {
			return err
		}
	}
	return serviceAccountKey(*directory)
}

// newAuthority makes an authority and writes its certificate; its key stays in memory, nothing is signed later but
// what the controller manager signs with the key of the cluster's authority.
func newAuthority(directory, file, name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template, err := newTemplate(pkix.Name{CommonName: name})
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		return nil, err
	}
	if err := writeKey(directory, file, key); err != nil {
		return nil, err
	}
	return &authority{certificate, key}, writePem(directory, file+".crt", "CERTIFICATE", raw, 0o644)
}

func newTemplate(name pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	// A resumed node's clock may stand still for a moment, and nobody is helped by a certificate that is "not yet" valid.
	begin := time.Now().Add(-24 * time.Hour)
	return &x509.Certificate{SerialNumber: serial, Subject: name, NotBefore: begin, NotAfter: begin.Add(lifetime)}, nil
}

// issue writes FILE.crt and FILE.key for who.
func (a *authority) issue(directory, file string, who subject) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template, err := newTemplate(pkix.Name{CommonName: who.name, Organization: who.groups})
	if err != nil {
		return err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(who.hosts) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	for _, host := range who.hosts {
		if address := net.ParseIP(host); address != nil {
			template.IPAddresses = append(template.IPAddresses, address)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return err
	}
	if err := writeKey(directory, file, key); err != nil {
		return err
	}
	return writePem(directory, file+".crt", "CERTIFICATE", raw, 0o644)
}

// serviceAccountKey writes the pair that signs and checks the tokens of service accounts.
func serviceAccountKey(directory string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	if err := writePem(directory, "sa.key", "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key), 0o600); err != nil {
		return err
	}
	raw, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	return writePem(directory, "sa.pub", "PUBLIC KEY", raw, 0o644)
}

func writeKey(directory, file string, key *ecdsa.PrivateKey) error {
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePem(directory, file+".key", "EC PRIVATE KEY", raw, 0o600)
}

func writePem(directory, file, kind string, raw []byte, mode os.FileMode) error {
	content := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw})
	return os.WriteFile(filepath.Join(directory, file), content, mode)
}
