// Which transports there are (open_transport.hpp).
#include "cluster.hpp"
#include "coherence/open_transport.hpp"

namespace coherence {

using Transports = ClusterTest;

TEST_F(Transports, AreFoundByName) {
  Problem problem;
  auto shm = open_transport("shm", &problem);
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
    EXPECT_EQ(open_transport(name, &problem).error(), Errc::kNotFound) << name;
    EXPECT_NE(strstr(problem.text, "there is shm"), nullptr) << problem.text;
  }
}

}  // namespace coherence
