// gcl_memnode: serves the memory of one memory node to the primaries of a cluster.
#include <CLI/CLI.hpp>

#include "coherence/transport/shm/served_part.hpp"
#include "coherence/transport/tcp/member/patience.hpp"
#include "tools/memnode/daemon.hpp"

int main(int argc, char** argv) {
  CLI::App app{"Serves the memory of one memory node of a pool to the primaries of a cluster."};
  memnode::Options options;
  app.add_option("FILE", options.file, "the memory node's file: POOL, or POOL.memK")->required();
  app.add_option("--saved", options.saved,
                 "the pool's durable copy (its name, without .memK), loaded when the memory has lost it");
  app.add_option("--first", options.first, "of POOL.memK: where memory node 0 is, which lets nodes in");
  app.add_option("--address", options.address, "of POOL.memK: where primaries reach it, if not where it listens first");
  app.add_option("--pages", options.pages_bytes, "of POOL.memK that is new to the pool: bytes of pages, 8GB")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--listen", options.listen, "host:port, [v6]:port or unix:/path; may be repeated")->required();
  CLI::Option* key = app.add_option("--key", options.key, "file with the cluster's key");
  CLI::Option* certificate = app.add_option("--certificate", options.certificate, "this memory node's, in PEM");
  CLI::Option* secret = app.add_option("--certificate-key", options.certificate_key, "its private key, in PEM");
  CLI::Option* authority = app.add_option("--ca", options.authority, "who signs for members of the cluster, in PEM");
  CLI::Option* plain = app.add_flag("--plain", options.plain, "no protection; only on loopback and unix sockets");
  key->excludes(certificate)->excludes(plain);
  certificate->needs(secret)->needs(authority)->excludes(plain);
  secret->needs(certificate);
  authority->needs(certificate);
  CLI::Option* verbs =
      app.add_flag("--verbs", options.verbs, "primaries reach the memory by RDMA (gcl.transport = verbs), and only so");
  app.add_option("--device", options.device, "the RDMA device; else the one with the address of --listen")
      ->needs(verbs);
  app.add_option("--device-port", options.device_port, "port of the device")->needs(verbs)->check(CLI::Range(1, 255));
  app.add_option("--gid-index", options.gid_index, "place in the port's GID table")
      ->needs(verbs)
      ->check(CLI::Range(0, 1023));
  app.add_option("--patience", options.patience_s, "seconds for which a primary may be away before it counts as dead")
      ->capture_default_str()
      ->check(CLI::Range(coherence::tcp::kPatienceMinMs / 1000, coherence::tcp::kPatienceMaxMs / 1000));
  app.add_flag("--check", options.check, "say what would be served, and end");
  app.footer(
      "SIGTERM or SIGINT stops it; SIGUSR1 has it write its figures to stderr: batches, bytes, links, queue pairs, "
      "CPU time.");
  CLI11_PARSE(app, argc, argv);
  if (options.key.empty() && options.certificate.empty() && !options.plain) {
    fprintf(stderr, "gcl_memnode: one of --key, --certificate and --plain is wanted\n");
    return 1;
  }
  const bool further = coherence::ServedPart::number_of(options.file) != 0;
  if (!options.check && further == options.first.empty()) {
    fprintf(stderr, "gcl_memnode: %s\n",
            further ? "--first says where memory node 0 is, which lets nodes in"
                    : "--first goes with another memory node than 0: POOL.mem1, and so on");
    return 1;
  }
  return options.check ? memnode::check(options) : memnode::serve(options);
}
