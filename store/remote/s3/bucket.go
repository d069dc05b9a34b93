// Package s3 keeps symbol tables in a bucket of S3, or of a server that speaks its protocol: a
// remote.Bucket. Only this package imports the client library.
//
// A request that fails because of the network or the server is repeated, with growing pauses. A
// request that receives nothing for Options.Stall is not.
package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/minio/minio-go/v7"

	"symbolize/store"
	"symbolize/store/httpretry"
	"symbolize/store/remote"
)

// Bucket is a bucket, or the part of it below a prefix.
type Bucket struct {
	client  minio.Core
	name    string
	prefix  string // "" or ending in a slash
	retries int
	maxKeys int // of a listing
}

// Open returns a bucket without making a request.
func Open(o *Options) (*Bucket, error) {
	client, err := minio.NewCore(o.host, &minio.Options{Creds: o.credentials(), Secure: o.secure,
		Region: o.region, BucketLookup: o.lookup, MaxRetries: 1, Transport: o.transport()})
	if err != nil {
		return nil, err
	}
	return &Bucket{client: *client, name: o.bucket, prefix: o.prefix, retries: o.Retries,
		maxKeys: maxKeys}, nil
}

// URL implements remote.Bucket.
func (b *Bucket) URL(key string) string { return "s3://" + b.name + "/" + b.prefix + key }

// fail adds to an error the URL and the code of the server's response.
func (b *Bucket) fail(key string, err error) error {
	if err == nil {
		return nil
	}
	var answer minio.ErrorResponse
	switch {
	case errors.As(err, &answer) && (answer.Code == minio.NoSuchKey):
		return fmt.Errorf("%s: %w", b.URL(key), remote.ErrNotFound)
	case errors.As(err, &answer) && answer.StatusCode != 0:
		return fmt.Errorf("%s: the server answers %d %s: %s", b.URL(key), answer.StatusCode, answer.Code,
			answer.Message)
	}
	return fmt.Errorf("%s: %w", b.URL(key), err)
}

// Get implements remote.Bucket. It repeats a request if the response breaks off.
func (b *Bucket) Get(ctx context.Context, key string, limit int64) (data []byte, err error) {
	for range b.retries + 1 {
		var again bool
		if data, again, err = b.get(ctx, key, limit); err == nil || !again || ctx.Err() != nil {
			break
		}
	}
	return data, b.fail(key, err)
}

// get is one try; again reports whether another one may succeed.
func (b *Bucket) get(ctx context.Context, key string, limit int64) (_ []byte, again bool, err error) {
	body, info, _, err := b.client.GetObject(ctx, b.name, b.prefix+key, minio.GetObjectOptions{})
	if err != nil {
		return nil, false, err // the transport has repeated it
	}
	defer body.Close()
	if info.Size > limit {
		return nil, false, fmt.Errorf("%w: %d bytes, at most %d", store.ErrTooLarge, info.Size, limit)
	}
	data, err := io.ReadAll(io.LimitReader(body, limit+1))
	switch {
	case err != nil:
		return nil, !errors.Is(err, httpretry.ErrStalled), fmt.Errorf("after %d bytes: %w", len(data), err)
	case int64(len(data)) > limit:
		return nil, false, fmt.Errorf("%w: over %d bytes", store.ErrTooLarge, limit)
	}
	return data, false, nil
}

// Stat implements remote.Bucket.
func (b *Bucket) Stat(ctx context.Context, key string) (remote.Entry, error) {
	info, err := b.client.StatObject(ctx, b.name, b.prefix+key, minio.StatObjectOptions{})
	return remote.Entry{Key: key, Size: info.Size, Modified: info.LastModified}, b.fail(key, err)
}

// Remove implements remote.Bucket.
func (b *Bucket) Remove(ctx context.Context, key string) error {
	return b.fail(key, b.client.RemoveObject(ctx, b.name, b.prefix+key, minio.RemoveObjectOptions{}))
}

// Put implements remote.Bucket. The server refuses the second of two writers (If-None-Match).
func (b *Bucket) Put(ctx context.Context, key string, data []byte) (created bool, err error) {
	opts := putOptions()
	opts.SetMatchETagExcept("*")
	err = b.put(ctx, key, data, opts)
	var answer minio.ErrorResponse
	if errors.As(err, &answer) && answer.StatusCode == http.StatusPreconditionFailed {
		return false, nil
	}
	return err == nil, b.fail(key, err)
}

// Replace implements remote.Bucket.
func (b *Bucket) Replace(ctx context.Context, key string, data []byte) error {
	return b.fail(key, b.put(ctx, key, data, putOptions()))
}

func putOptions() minio.PutObjectOptions {
	return minio.PutObjectOptions{DisableMultipart: true, ContentType: "application/octet-stream"}
}

func (b *Bucket) put(ctx context.Context, key string, data []byte, opts minio.PutObjectOptions) error {
	_, err := b.client.Client.PutObject(ctx, b.name, b.prefix+key, bytes.NewReader(data), int64(len(data)),
		opts)
	return err
}

// maxKeys bounds a listing: a server may send pages without end.
const maxKeys = 1_000_000

// List implements remote.Bucket.
func (b *Bucket) List(ctx context.Context, prefix string) ([]remote.Entry, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the library's goroutine
	var list []remote.Entry
	for o := range b.client.Client.ListObjects(ctx, b.name,
		minio.ListObjectsOptions{Prefix: b.prefix + prefix, Recursive: true}) {
		if o.Err != nil {
			return nil, b.fail(prefix, o.Err)
		}
		if len(list) == b.maxKeys {
			return nil, b.fail(prefix, fmt.Errorf("%w: a list of over %d keys", store.ErrTooLarge,
				b.maxKeys))
		}
		list = append(list, remote.Entry{Key: strings.TrimPrefix(o.Key, b.prefix), Size: o.Size,
			Modified: o.LastModified})
	}
	slices.SortFunc(list, func(a, b remote.Entry) int { return strings.Compare(a.Key, b.Key) })
	return list, ctx.Err()
}
