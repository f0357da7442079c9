from kafkalite.meta.changes import (
    BrokerUnregistered,
    ConfigsChanged,
    PartitionsAdded,
    TopicDeleted,
)
from kafkalite.meta.image import (
    RETIRED_TOPIC_IDS_MAX,
    ConfigResource,
    Image,
    ImageBuilder,
    PartitionImage,
)
from kafkalite.wire.errors import ErrorCode
from tests.meta.meta_kit import BROKER, image, shutting_down, topic_id

REPLICA = PartitionImage((1,), (1,), 1)


def test_an_image_is_not_changed_by_what_follows_it():
    before = image("a")
    after = before.apply(
        [TopicDeleted(name="a", topic_id=topic_id(1)), BrokerUnregistered(broker_id=1)]
    )
    assert list(before.topics) == ["a"]
    assert list(before.brokers) == [1]
    assert not after.topics
    assert not after.brokers
    assert after.version == before.version + 1


def test_what_a_commit_does_not_touch_is_shared():
    before = image("a")
    changed = ConfigsChanged(resource_type=BROKER, resource_name="1", values={"x": "1"})
    after = before.apply([changed])
    assert after.topics is before.topics
    assert after.configs is not before.configs


def test_topics_are_found_by_name_and_by_id():
    before = image("a", "b")
    assert before.topic_by_id(topic_id(2)) is before.topics["b"]
    assert before.topic_by_id(topic_id(9)) is None
    grown = before.apply([PartitionsAdded(name="a", topic_id=topic_id(1), partitions=(REPLICA,))])
    assert grown.topic_by_id(topic_id(1)) is grown.topics["a"]


def test_partitions_are_found_by_index():
    before = image("a")
    assert before.partition("a", 0) == REPLICA
    assert before.partition("a", 1) is None
    assert before.partition("a", -1) is None
    assert before.partition("b", 0) is None


def test_an_unknown_topic_is_answered_by_its_name():
    """Rule 19."""
    assert Image().refusal_of_unknown("a") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert Image().refusal_of_unknown("bad name") is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_resources_without_settings_are_forgotten():
    resource = ConfigResource(BROKER, "1")
    with_settings = image().apply(
        [ConfigsChanged(resource_type=BROKER, resource_name="1", values={"x": "1"})]
    )
    assert with_settings.configs_of(resource) == {"x": "1"}
    without = with_settings.apply(
        [ConfigsChanged(resource_type=BROKER, resource_name="1", removed=("x", "y"))]
    )
    assert resource not in without.configs
    assert without.configs_of(resource) == {}


def test_only_the_latest_retired_ids_are_remembered():
    builder = ImageBuilder(Image())
    builder.retire(tuple(map(topic_id, range(RETIRED_TOPIC_IDS_MAX + 5))))
    retired = builder.build(1).retired_topic_ids
    assert len(retired) == RETIRED_TOPIC_IDS_MAX
    assert retired[-1] == topic_id(RETIRED_TOPIC_IDS_MAX + 4)


def test_names_that_others_may_not_resemble_are_known_until_their_topic_goes():
    """Rule 22: found without a look at every topic."""
    both = image("a.b", "plain", "a_b")  # as found on disk: nothing could be asked
    assert both.colliding == {"a_b": "a_b"}
    older_gone = both.apply([TopicDeleted(name="a.b", topic_id=topic_id(1))])
    assert older_gone.colliding == {"a_b": "a_b"}
    assert older_gone.apply([TopicDeleted(name="plain", topic_id=topic_id(2))]).colliding
    assert not older_gone.apply([TopicDeleted(name="a_b", topic_id=topic_id(3))]).colliding


def test_leaders_may_be_live_brokers_that_are_not_shutting_down():
    """Rule 183."""
    before = shutting_down(image(brokers=(3, 1, 2)), 2)
    assert before.eligible_brokers() == (1, 3)


def test_an_image_is_the_same_under_another_controller():
    before = image("a")
    other = before.with_controller(2, 7)
    assert (other.controller_id, other.controller_epoch) == (2, 7)
    assert other.topics is before.topics


def test_a_reassigned_partition_knows_where_it_came_from_and_goes():
    """KIP-455."""
    state = PartitionImage((4, 1, 2), (1, 2), 1, adding=(4,), removing=(2,))
    assert state.is_reassigned
    assert (state.target, state.origin) == ((4, 1), (1, 2))
    assert not PartitionImage((1,), (1,), 1).is_reassigned
