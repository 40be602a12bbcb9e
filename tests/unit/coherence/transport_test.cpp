// Which transports there are (open_transport.hpp).
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "cluster.hpp"
#include "coherence/open_transport.hpp"

namespace coherence {

using Transports = ClusterTest;

TEST_F(Transports, AreFoundByName) {
  Problem problem;
  auto shm = open_transport({.kind = "shm"}, &problem);
  ASSERT_TRUE(shm.ok()) << problem.text;
  auto opened = (*shm)->open_pool(files(), &problem);
  ASSERT_TRUE(opened.ok()) << problem.text;
  EXPECT_EQ((*opened)->pool_id(), pool->pool_id());
  auto node = Node::join(**opened, NodeId{0}, {.frames = 16, .sessions_max = 2}, &problem, **shm);
  ASSERT_TRUE(node.ok()) << problem.text;
  EXPECT_TRUE((*node)->live().has(NodeId{0}));
}

TEST_F(Transports, ThatAreNotThereAreRefused) {
  for (const char* name : {"", "SHM", "shm2", "carrier pigeons"}) {
    Problem problem;
    EXPECT_EQ(open_transport({.kind = name}, &problem).error(), Errc::kNotFound) << name;
    EXPECT_NE(strstr(problem.text, "there are shm, tcp and verbs"), nullptr) << problem.text;
  }
}

// What is wrong with their settings is said before anything is connected to.
TEST_F(Transports, OverANetworkSayWhatIsWrongWithTheirSettings) {
  char key[] = "/tmp/gcl-test-XXXXXX";
  const int file = mkstemp(key);  // its owner's alone
  const std::string digits(64, '7');
  ASSERT_EQ(write(file, digits.data(), digits.size()), ssize_t(digits.size()));
  close(file);
  struct Case {
    TransportSettings settings;
    const char* says;
  };
  for (const Case& c : {
           Case{{.kind = "tcp", .listen = "127.0.0.1:0"}, "the address of memory node 0 is wanted"},
           Case{{.kind = "tcp", .memory_nodes = "127.0.0.1", .listen = "127.0.0.1:0"}, "127.0.0.1"},
           Case{{.kind = "tcp", .memory_nodes = "127.0.0.1:5555,m:1", .listen = "127.0.0.1:0"}, "alone is named, not"},
           Case{{.kind = "tcp", .memory_nodes = "127.0.0.1:5555", .listen = ""}, "address"},
           Case{{.kind = "tcp", .memory_nodes = "192.0.2.1:5555", .listen = "127.0.0.1:0"}, "192.0.2.1:5555"},
           Case{{.kind = "tcp", .memory_nodes = "127.0.0.1:5555", .listen = "0.0.0.0:0"}, "0.0.0.0:0"},
           Case{{.kind = "tcp", .memory_nodes = "127.0.0.1:1", .listen = "127.0.0.1:0", .key_file = "/nowhere/key"},
                "/nowhere/key"},
           Case{{.kind = "tcp", .memory_nodes = "127.0.0.1:5555", .listen = "0.0.0.0:0", .key_file = key},
                "0.0.0.0:0 is no address that peers can reach"},
           Case{{.kind = "tcp", .memory_nodes = "127.0.0.1:5555", .listen = "[::]:0", .key_file = key},
                "[::]:0 is no address that peers can reach"},
       }) {
    Problem problem;
    EXPECT_FALSE(open_transport(c.settings, &problem).ok()) << c.says;
    EXPECT_NE(strstr(problem.text, c.says), nullptr) << problem.text;
  }
  unlink(key);
}

}  // namespace coherence
