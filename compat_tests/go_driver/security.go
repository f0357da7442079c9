// How the Go drivers come in where that takes TLS and a login; see DRIVERS.md.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"os"
)

type Security struct {
	Protocol  string `json:"protocol"`
	CA        string `json:"ca"`
	Identity  string `json:"identity"`
	Mechanism string `json:"mechanism"`
	User      string `json:"user"`
	Password  string `json:"password"`
	Token     string `json:"token"`
}

// security is what the test asks for; all of it is empty for a broker that is open to everybody.
var security = func() (found Security) {
	if text := os.Getenv("KAFKALITE_COMPAT_SECURITY"); text != "" {
		if err := json.Unmarshal([]byte(text), &found); err != nil {
			panic(err)
		}
	}
	return found
}()

// tlsConfig is nil without encryption.
func tlsConfig() *tls.Config {
	if security.CA == "" {
		return nil
	}
	pem, err := os.ReadFile(security.CA)
	if err != nil {
		panic(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	config := &tls.Config{RootCAs: roots}
	if security.Identity != "" {
		pair, err := tls.LoadX509KeyPair(security.Identity, security.Identity)
		if err != nil {
			panic(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config
}
