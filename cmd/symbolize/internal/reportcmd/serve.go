package reportcmd

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// readTimeout bounds the time for a request's head.
const readTimeout = 10 * time.Second

// servePage serves a page at a listener of this host until the context ends, which is no error. It
// closes the listener.
func servePage(ctx context.Context, ln net.Listener, page []byte) error {
	mux := http.NewServeMux()
	mux.HandleFunc("/favicon.ico", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent) // browsers ask for it and complain
	})
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Write(page)
	})
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	srv := &http.Server{Handler: ownRequests(mux, port), ReadHeaderTimeout: readTimeout}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// servedPolicy is the Content-Security-Policy of a served page, which adds its own: nothing is loaded
// or sent.
const servedPolicy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// ownRequests refuses requests under other names than this host's, so that no page of another site
// can read the profile, and sets the policy.
func ownRequests(h http.Handler, port string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "127.0.0.1:"+port && r.Host != "localhost:"+port {
			http.Error(w, "this server answers for 127.0.0.1 alone", http.StatusForbidden)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead || fromElsewhere(r) {
			http.Error(w, "this server answers its own pages alone", http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Security-Policy", servedPolicy)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		h.ServeHTTP(w, r)
	})
}

// fromElsewhere reports whether a page of another site makes a request in the background. A link
// there to a page here is followed: the site sees nothing of it.
func fromElsewhere(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
		return r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document"
	}
	origin := r.Header.Get("Origin")
	return origin != "" && origin != "http://"+r.Host
}
