"""The service that a comparison starts itself: the new way, whatever else its configuration has switched on."""

CONFIG = """
upstream: sandbox
store: "memory:"
applications: {{demo: {{apikeys: ["EXAMPLE_KEY"], shadow: {{share: 1, answer: old}}}}}}
shadow: {{old_url: "{old}", rate: 0}}
"""


async def test_clients_that_the_old_service_still_answers_are_asked_for_the_new_way(run, two, log, tmp_path):
    (tmp_path / "own.yaml").write_text(CONFIG.format(old=two.old_url))
    found = await run(
        *("compare", "--old", two.old_url, "--config", "own.yaml", "--requests", log(3, "EXAMPLE_KEY")),
        *("--old-rate", "0", "--log-level", "warning"),
    )
    assert found.code == 1, found  # the old side's answers are made up, and the new way does not give them back
    assert set(two.old.keys) == {"EXAMPLE_KEY"}
    assert len(two.old.asked) <= 2 * 3  # by the comparison, which asks again where answers differ; by no shadow


async def test_clients_whose_key_it_does_not_know_are_named(run, log, tmp_path):
    found = await run("compare", "--old", "sandbox", "--requests", log(2, "c4n4ry-of-nobody"))
    assert found.code == 1, found
    assert "config.yaml has the key of key 1: keys.new or --new-key gives one that it has" in found.out
    assert "c4n4ry" not in found.out + found.err
