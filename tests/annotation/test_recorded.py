"""What a tool receives of annotated programs: exactly the ranges that they opened, in order."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.annotation.recorder import Call, events, recorded, run

POP = ("pop", "", None)
ROLES = [(1, "iteration"), (2, "data loading"), (3, "phase"), (4, "function"), (5, "capture")]


def wait(number: int) -> list[tuple[str, str, int | None]]:
    return [("push", "data loading", number), POP]


def iteration(
    number: int, *inside: tuple[str, str, int | None], message: str = "iteration"
) -> list[tuple[str, str, int | None]]:
    return [("push", message, number), *inside, POP]


def test_a_loop(tool: Path) -> None:
    calls = recorded(
        tool,
        """
        import kernelscope as ks
        for batch in ks.iterations("ab", batch_size=64):
            with ks.phase("forward"):
                pass
        """,
    )
    forward = ("push", "forward", None), POP
    message = "iteration {ks1 batch=64}"

    assert events(calls) == [
        *wait(0),
        *iteration(0, *forward, message=message),
        *wait(1),
        *iteration(1, *forward, message=message),
        *wait(2),  # for a batch that does not come
    ]
    assert {c.domain for c in calls} == {"kernelscope"}
    assert len({c.thread for c in calls}) == 1
    assert [(c.category, c.message) for c in calls if c.call == "category"] == ROLES
    pushed = {(c.message, c.category) for c in calls if c.call == "push"}
    assert pushed == {("data loading", 2), (message, 1), ("forward", 3)}
    assert Counter(c.message for c in calls if c.call == "string") == {
        "data loading": 1, message: 1, "forward": 1,
    }  # fmt: skip


def test_numbers_go_on_over_epochs_and_from_a_checkpoint(tool: Path) -> None:
    calls = recorded(
        tool,
        """
        import kernelscope as ks
        loop = ks.iterations("ab", name="train", start=100)
        assert len(loop) == 2
        assert [list(loop), list(loop)] == [["a", "b"], ["a", "b"]]
        """,
    )
    numbers = [c.payload for c in calls if c.call == "push" and c.message == "train"]
    assert numbers == [100, 101, 102, 103]


def test_a_broken_off_iteration_keeps_its_number(tool: Path) -> None:
    calls = recorded(
        tool,
        """
        import kernelscope as ks
        loop = ks.iterations("abc")
        for batch in loop:
            break
        list(loop)
        """,
    )
    assert [c.payload for c in calls if c.call == "push" and c.category == 1] == [0, 1, 2, 3]


def test_no_batch_is_kept_alive(tool: Path) -> None:
    program = """
        import warnings, weakref
        import kernelscope as ks
        warnings.simplefilter("ignore", ks.annotation.CaptureWarning)

        class Batch:
            def __len__(self):
                return 3

        seen = None
        for batch in ks.iterations(
            (Batch() for _ in range(3)), batch_size=len, profile=range(1, 2)
        ):
            assert seen is None or seen() is None
            seen = weakref.ref(batch)
            del batch
            assert seen() is None
        """
    recorded(tool, program)
    run(program)


def test_sizes_of_batches(tool: Path) -> None:
    calls = recorded(
        tool,
        """
        import kernelscope as ks
        for batch in ks.iterations(["aa", "bb", "c", "dd"], batch_size=len):
            pass
        """,
    )
    sizes = [c.message for c in calls if c.call == "push" and c.category == 1]
    two, one = "iteration {ks1 batch=2}", "iteration {ks1 batch=1}"
    assert sizes == [two, two, one, two]
    assert Counter(c.message for c in calls if c.call == "string")[two] == 1


def test_exceptions_and_breaks_close_ranges(tool: Path) -> None:
    calls = recorded(
        tool,
        """
        import kernelscope as ks

        def failing():
            yield 1
            raise OSError

        def step(batch):
            with ks.phase("forward"):
                raise KeyError

        def epoch():
            for batch in ks.iterations([1, 2]):
                step(batch)

        try:
            epoch()
        except KeyError:
            ks.mark("caught in the body")
        for batch in ks.iterations([1, 2]):
            break
        ks.mark("broken off")
        try:
            for batch in ks.iterations(failing()):
                pass
        except OSError:
            ks.mark("caught in the loader")
        """,
    )
    assert events(calls) == [
        *wait(0),
        *iteration(0, ("push", "forward", None), POP),
        ("mark", "caught in the body", None),
        *wait(0),
        *iteration(0),
        ("mark", "broken off", None),
        *wait(0),
        *iteration(0),
        *wait(1),
        ("mark", "caught in the loader", None),
    ]


def test_phases_domains_categories_and_payloads(tool: Path) -> None:
    calls = recorded(
        tool,
        """
        import kernelscope as ks
        with ks.phase("a", payload=7), ks.phase("b", payload=-0.5), ks.phase("a", payload=True):
            pass
        with ks.phase("a", domain="mine", category="kind"):
            ks.mark("here", domain="mine", category="kind", payload=-(1 << 63))
        with ks.phase("a", category="kind"), ks.phase("a", category=99):
            pass
        with ks.phase("a", domain="", path="not said"):
            pass
        with ks.start_range("s", domain="mine", payload=3) as held:
            held.end()
        held.end()
        """,
    )
    happened = [c for c in calls if c.call in ("push", "start", "mark")]
    said = [(c.domain, c.message, c.category, c.payload) for c in happened]

    assert said == [
        ("kernelscope", "a", 3, 7),
        ("kernelscope", "b", 3, -0.5),
        ("kernelscope", "a", 3, 1),
        ("mine", "a", 1, None),
        ("mine", "here", 1, -(1 << 63)),
        ("kernelscope", "a {ks1 role=phase}", 6, None),
        ("kernelscope", "a {ks1 role=phase}", 99, None),
        ("", "a", 0, None),
        ("mine", "s", 0, 3),
    ]
    named = [(c.domain, c.message, c.category) for c in calls if c.call == "category"]
    assert named == [
        *(("kernelscope", name, number) for number, name in ROLES),
        ("mine", "kind", 1),
        ("kernelscope", "kind", 6),
    ]
    assert [c.call for c in calls].count("end") == 1


def test_shapes_are_registered_once(tool: Path) -> None:
    calls = recorded(
        tool,
        """
        import numpy as np
        import kernelscope as ks
        x = np.zeros((2, 3), np.float32)
        for shape in [(4,), (5,), (4,), (4,)]:
            with ks.phase("conv", path="net.conv", inputs=[x, (shape, "int64")], flops=24):
                pass
        """,
    )
    four, five = (
        f"conv {{ks1 path=net.conv; in=float32[2,3] int64[{n}]; flops=24}}" for n in (4, 5)
    )
    assert [c.message for c in calls if c.call == "push"] == [four, five, four, four]
    assert [c.message for c in calls if c.call == "string"] == [four, five]


def test_functions(tool: Path) -> None:
    calls = recorded(
        tool,
        """
        import kernelscope as ks

        @ks.annotate
        def plain(depth):
            '''Says.'''
            if depth:
                plain(depth - 1)
            return depth

        @ks.annotate("fails", payload=3)
        def failing():
            raise ValueError

        class Net:
            @staticmethod
            @ks.annotate(category="mine")
            def forward(x):
                return x

        assert plain(1) == 1 and plain.__name__ == "plain" and plain.__doc__ == "Says."
        try:
            failing()
        except ValueError:
            pass
        assert Net.forward(5) == 5
        """,
    )
    plain = "plain {ks1 path=__main__.plain}"
    assert events(calls) == [
        ("push", plain, None),
        ("push", plain, None),
        POP,
        POP,
        ("push", "fails {ks1 path=__main__.failing}", 3),
        POP,
        ("push", "Net.forward {ks1 role=function; path=__main__.Net.forward}", None),
        POP,
    ]


def test_generators_have_a_range_for_each_stretch(tool: Path) -> None:
    calls = recorded(
        tool,
        """
        import kernelscope as ks

        @ks.annotate("g")
        def gen():
            try:
                got = yield 1
            except KeyError:
                got = "thrown"
            ks.mark(got)
            yield 2
            return 3

        def outer():
            result = yield from gen()
            ks.mark(f"returned {result}")

        it = gen()
        assert next(it) == 1
        ks.mark("between")
        assert it.send("sent") == 2
        it.close()
        it = gen()
        next(it)
        assert it.throw(KeyError()) == 2
        assert list(it) == []
        list(x for x in gen() if ks.mark("item"))
        """.replace("got = yield 1", "got = (yield 1) or 'nothing'"),
    )
    names = [
        c.message if c.call == "mark" else c.call
        for c in calls
        if c.call in ("push", "pop", "mark")
    ]
    pair = ["push", "pop"]
    assert names == [
        *pair, "between", "push", "sent", "pop", *pair,  # the last one: close
        *pair, "push", "thrown", "pop", *pair,
        *pair, "item", "push", "nothing", "pop", "item", *pair,
    ]  # fmt: skip


def test_coroutines_and_asynchronous_generators(tool: Path) -> None:
    calls = recorded(
        tool,
        """
        import asyncio
        import kernelscope as ks

        @ks.annotate("item")
        async def items():
            for number in range(2):
                await asyncio.sleep(0)
                yield number

        @ks.annotate("request")
        async def request(name):
            with ks.phase(name):
                await asyncio.sleep(0)
                async for _ in items():
                    await asyncio.sleep(0)

        async def main():
            await asyncio.gather(request("a"), request("b"))

        with ks.phase("around"):
            asyncio.run(main())
        """,
    )
    assert [c.message for c in calls if c.call == "push"] == ["around"]
    assert [c.call for c in calls].count("pop") == 1
    spans = started(calls)
    assert Counter(name for name, _, _ in spans) == {
        "request {ks1 path=__main__.request}": 2, "a": 1, "b": 1,
        "item {ks1 path=__main__.items}": 6,  # two items and an end, each of two
    }  # fmt: skip
    (a,), (b,) = ([span for span in spans if span[0] == name] for name in "ab")
    assert a[1] < b[1] < a[2] < b[2]  # they overlap, and neither took the other's end
    assert not any(c.call == "mark" for c in calls)


def started(calls: list[Call]) -> list[tuple[str, int, int]]:
    """Return (message, place of its start, place of its end) of start/end ranges; each has both."""
    opened = {c.result: (c.message, place) for place, c in enumerate(calls) if c.call == "start"}
    closed = {c.result: place for place, c in enumerate(calls) if c.call == "end"}
    assert opened.keys() == closed.keys()
    assert len(closed) == sum(c.call == "end" for c in calls)
    return [(name, place, closed[number]) for number, (name, place) in opened.items()]


def test_threads_have_stacks_of_their_own(tool: Path) -> None:
    calls = recorded(
        tool,
        """
        import threading
        import kernelscope as ks

        shared, barrier = ks.phase("shared"), threading.Barrier(4)

        def work(number):
            for _ in range(50):
                with shared:
                    barrier.wait()
                    with ks.phase(f"thread {number}"), shared:
                        barrier.wait()

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        handle = ks.start_range("from one thread to another")
        ender = threading.Thread(target=handle.end)
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        ender.start()
        ender.join()
        """,
    )
    pushing = {c.thread for c in calls if c.call == "push"}
    assert len(pushing) == 4
    for thread in pushing:
        mine = events([c for c in calls if c.thread == thread])
        (own,) = {message for call, message, _ in mine if message.startswith("thread")}
        names = ("shared", own, "shared")
        assert mine == [*(("push", name, None) for name in names), POP, POP, POP] * 50
    (handed,) = started(calls)
    assert handed[0] == "from one thread to another"
    assert calls[handed[1]].thread != calls[handed[2]].thread


def test_a_worker_thread_of_a_task_does_not_close_the_tasks_ranges(tool: Path) -> None:
    calls = recorded(
        tool,
        """
        import asyncio
        import kernelscope as ks

        def work():
            with ks.phase("same"):
                pass

        async def main():
            with ks.phase("same"):
                await asyncio.to_thread(work)

        asyncio.run(main())
        """,
    )
    assert [c.call for c in calls if c.call in ("start", "push", "pop", "end")] == [
        "start", "push", "pop", "end",
    ]  # fmt: skip


def test_ranges_closed_out_of_order_are_put_right_and_reported(tool: Path) -> None:
    calls = recorded(
        tool,
        """
        import warnings
        import kernelscope as ks

        def held():
            with ks.phase("outer", payload=1):
                yield

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                it = held()
                next(it)
                with ks.phase("inner", payload=2):
                    it.close()
        (one,) = caught
        assert one.category is ks.annotation.NestingWarning, one
        assert "'outer' was closed before 'inner'" in str(one.message), one
        assert one.filename == "<string>", one
        """,
    )
    text = "nesting: 'outer' was closed before 'inner' inside it, which is in two parts"
    once = [
        ("push", "outer", 1), ("push", "inner", 2), POP, POP, ("push", "inner", 2),
        ("mark", text, None), POP,
    ]  # fmt: skip
    assert events(calls) == once * 2


def test_a_range_closed_on_another_thread_is_reported(tool: Path) -> None:
    calls = recorded(
        tool,
        """
        import threading, warnings
        import kernelscope as ks
        held = ks.phase("held")
        held.__enter__()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            thread = threading.Thread(target=held.__exit__, args=(None, None, None))
            thread.start()
            thread.join()
        assert len(caught) == 1
        held.__exit__(None, None, None)
        """,
    )
    assert [c.call for c in calls if c.call in ("push", "pop", "mark")] == ["push", "mark", "pop"]


def test_nvtx_disable(tool: Path) -> None:
    program = """
        import kernelscope as ks
        for batch in ks.iterations("ab"):
            with ks.phase("forward"), ks.start_range("r"):
                ks.mark("m")
        """
    assert recorded(tool, program, NVTX_DISABLE="1") == []
