// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

const (
	topic      = "otlp_profiles"
	group      = "otelcol-profiles"
	partitions = 8
)

// kafkaProgram returns the path of the distribution with Kafka.
func kafkaProgram(t *testing.T) string {
	t.Helper()
	return builtProgram(t, "OTELCOL_PROFILES_KAFKA_BIN", "otelcol-profiles-kafka", "make build-kafka")
}

// newBroker starts a Kafka broker in this process, with the topic and the message size of
// config/README.md.
func newBroker(t *testing.T, options ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	broker, err := kfake.NewCluster(append([]kfake.Opt{
		kfake.NumBrokers(1),
		kfake.SeedTopics(partitions, topic),
		kfake.BrokerConfigs(map[string]string{"message.max.bytes": "16777216"}),
		kfake.GroupMinSessionTimeout(100 * time.Millisecond),
	}, options...)...)
	require.NoError(t, err)
	t.Cleanup(broker.Close)
	return broker
}

// toKafka starts the first half of the tier. Its url is that of OTLP/HTTP.
func toKafka(t *testing.T, broker string, variables env, args ...string) *member {
	t.Helper()
	http := freeAddress(t)
	all := env{"KAFKA_BROKERS": broker, "OTLP_GRPC_LISTEN": freeAddress(t), "OTLP_HTTP_LISTEN": http, "WINDOW": "200ms"}
	maps.Copy(all, variables)
	m := runConfig(t, kafkaProgram(t), "kafka/gateway-to-kafka.yaml", all, slices.Concat(quick["kafka/gateway-to-kafka.yaml"], args)...)
	m.url = "http://" + http
	return m
}

// fromKafka starts the second half of the tier.
func fromKafka(t *testing.T, broker string, variables env, args ...string) *member {
	t.Helper()
	all := env{"KAFKA_BROKERS": broker, "DATA_DIR": t.TempDir(), "WINDOW": "300ms"}
	maps.Copy(all, variables)
	return runConfig(t, kafkaProgram(t), "kafka/from-kafka.yaml", all, slices.Concat(quick["kafka/from-kafka.yaml"], args)...)
}

func awaitGroup(t *testing.T, broker *kfake.Cluster, members int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := broker.WaitGroupStable(ctx, group, members); err != nil {
		t.Fatalf("%d members of the group: %v", members, err)
	}
}

// asOTLP translates a pprof to an OTLP message of an instance of a service.
func asOTLP(t *testing.T, pprof []byte, service, instance string) []byte {
	t.Helper()
	pd, err := (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(pprof)
	require.NoError(t, err)
	for _, rp := range pd.ResourceProfiles().All() {
		rp.Resource().Attributes().PutStr("service.name", service)
		rp.Resource().Attributes().PutStr("service.instance.id", instance)
	}
	message := profiletest.Proto(t, pd)
	return message
}

const otlpPath = "/v1development/profiles"

// postOTLP posts an OTLP message and returns status and body of the response.
func postOTLP(url string, message []byte) (status int, said string, err error) {
	got, err := ask(http.MethodPost, url, message, "Content-Type", "application/x-protobuf")
	return got.status, got.body, err
}

func (m *member) sendOTLP(t *testing.T, pprof []byte, service, instance string) {
	t.Helper()
	status, said, err := postOTLP(m.url+otlpPath, asOTLP(t, pprof, service, instance))
	if err != nil || status != http.StatusOK {
		t.Fatalf("the answer is %d: %q, %v\n%s", status, said, err, m.kill())
	}
}

// produce writes a message to the topic.
func produce(t *testing.T, broker *kfake.Cluster, key string, value []byte) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.ListenAddrs()...), kgo.DefaultProduceTopic(topic),
		kgo.ProducerBatchMaxBytes(16<<20))
	require.NoError(t, err)
	defer client.Close()
	record := &kgo.Record{Value: value}
	if key != "" {
		record.Key = []byte(key)
	}
	require.NoError(t, client.ProduceSync(t.Context(), record).FirstErr())
}

// TestKafkaTier runs three sidecars, two collectors that write to Kafka and two that read from it. Kafka starts last, and reports
// too few replicas for messages that it has written. The service of a message determines its partition. The files hold
// three times the samples that google/pprof reads, and each service is in the files of one reader.
func TestKafkaTier(t *testing.T) {
	parallel(t)
	const instances = 3
	address := freeAddress(t)
	var readers, writers, sidecars []*member
	for range 2 {
		readers = append(readers, fromKafka(t, address, nil))
	}
	for i := range instances {
		if i < 2 {
			listen := freeAddress(t)
			writers = append(writers, toKafka(t, address, env{"OTLP_GRPC_LISTEN": listen}, "--set=exporters.kafka.timeout=500ms"))
			writers[i].url = listen
		}
		sidecars = append(sidecars, sidecar(t, t.TempDir(), "checkout", fmt.Sprintf("checkout-%d", i), writers[i%2].url))
	}
	sidecars[0].push(t, "early", numbered(t, 3))
	writers[0].await(t, "an attempt", func() bool {
		return writers[0].metric(t, "otelcol_processor_profiles_dedup_retries") > 0
	})
	port, err := strconv.Atoi(address[strings.LastIndex(address, ":")+1:])
	require.NoError(t, err)
	broker := newBroker(t, kfake.Ports(port))
	awaitGroup(t, broker, 2)
	broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotEnoughReplicasAfterAppend, Count: 2})
	pushed := slices.DeleteFunc(payloads(t), func(p payload) bool { return len(p.data) > 64<<10 })
	want := map[string]int64{"early cpu": 3}
	for _, p := range pushed {
		for _, e := range p.expected(t).profiles {
			for _, sample := range e.Samples {
				want[p.service+" "+e.Type] += instances * sample.Sum.Int64()
			}
		}
		for _, s := range sidecars {
			s.push(t, p.service, p.data)
		}
	}
	readers[0].await(t, "all sums", func() bool {
		return maps.Equal(want, totalsOf(slices.Concat(readers[0].written(t), readers[1].written(t))))
	})
	for _, m := range slices.Concat(sidecars, writers, readers) {
		m.stop(t)
	}

	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.ConsumeTopics(topic))
	require.NoError(t, err)
	defer client.Close()
	for _, message := range client.PollFetches(t.Context()).Records() {
		// Kafka's own clients choose the partition by murmur2 of the key.
		want := kgo.StickyKeyPartitioner(nil).ForTopic(topic).Partition(&kgo.Record{Key: message.Key}, partitions)
		assert.EqualValues(t, want, message.Partition, "partition of %s", message.Key)
	}

	one, other := byService(readers[0].written(t)), byService(readers[1].written(t))
	assert.NotEmpty(t, one)
	assert.NotEmpty(t, other)
	for _, p := range pushed {
		t.Run(p.service, func(t *testing.T) {
			assert.True(t, len(one[p.service]) == 0 || len(other[p.service]) == 0, "both readers have it")
			requireTimes(t, p, instances, append(one[p.service], other[p.service]...))
		})
	}
}

// TestKafkaReadersLoseNothing kills a reader without a window, and replaces it by two with open windows, of which one stops before the
// other. Nothing is lost. Messages are written twice only because the killed reader commits its offsets once per second.
func TestKafkaReadersLoseNothing(t *testing.T) {
	parallel(t)
	broker := newBroker(t)
	address := broker.ListenAddrs()[0]
	want := map[string]int64{}
	send := func(prefix string, round int) {
		for i := range 40 {
			service := fmt.Sprintf("%s-%d", prefix, i)
			produce(t, broker, service, asOTLP(t, numbered(t, 1), service, fmt.Sprint(round)))
			want[service+" cpu"]++
		}
	}
	begin := func(window string) *member {
		return fromKafka(t, address, env{"WINDOW": window},
			"--set=receivers.kafka.session_timeout=3s", "--set=receivers.kafka.heartbeat_interval=100ms")
	}
	awaitMessages := func(reader *member) {
		t.Helper()
		reader.await(t, "messages", func() bool { return reader.metric(t, "otelcol_processor_profiles_dedup_incoming_profiles") > 0 })
	}
	killed := begin("0s")
	send("first", 0)
	killed.await(t, "some messages", func() bool { return killed.metric(t, "otelcol_exporter_sent_profile_samples") >= 20 })
	killed.kill()
	one := begin("1h")
	send("other", 1)
	awaitMessages(one)
	other := begin("1h")
	awaitGroup(t, broker, 2)
	send("other", 2)
	awaitMessages(other)
	one.stop(t)
	send("other", 3)
	other.await(t, "all messages", func() bool {
		info := broker.GroupInfo(group)
		for _, partition := range broker.PartitionInfos(topic) {
			if commit := info.Commits[topic][partition.Partition]; commit.Offset < partition.HighWatermark {
				return false
			}
		}
		return true
	})
	other.stop(t)
	// The next start closes the file that the killed one had open.
	again := fromKafka(t, address, env{"DATA_DIR": filepath.Dir(killed.files)})
	again.stop(t)
	got := totalsOf(slices.Concat(again.written(t), one.written(t), other.written(t)))
	for service, sum := range got {
		if strings.HasPrefix(service, "first") && sum > 1 {
			got[service] = 1
		}
	}
	assert.Equal(t, want, got)
}
