"""Tests of which part a line is: the right one, or a clear doubt."""

import pytest

from proxy.tools.sheet import decisions
from proxy.tools.sheet.decisions import Decision
from proxy.tools.sheet.lines import Choice, Line
from proxy.tools.sheet.offers import CANDIDATES, Offer, OfferRules, Part, PartQuery, PartResult

TI, ST = "Texas Instruments", "STMicroelectronics"


def part(mpn: str, maker: str = TI, stock: int = 5, sku: str = "") -> Part:
    return Part(mpn, maker, offers=(Offer("459", "Digi-Key", True, sku, stock),))


class Service:
    """Finds parts as the service does: without separators, and by parts of the number."""

    def __init__(self, *parts: Part, error: str | None = None) -> None:
        self.parts, self.error = parts, error
        self.asked: list[PartQuery] = []
        self._results: dict[PartQuery, PartResult] = {}

    def decided(self, *choices: Choice) -> Decision:
        """Decide a line, with the results of all queries that this needs."""
        line = Line(2, choices, (), 1)
        while isinstance(query := decisions.decide(line, self._results.get, OfferRules(), "USD"), PartQuery):
            self.asked.append(query)
            found = [each for each in self.parts if self._matches(query, each)]
            shown = () if self.error else tuple(found[: query.limit])
            self._results[query] = PartResult(query, shown, len(found), self.error, 0.0)
        return query

    @property
    def limits(self) -> list[int]:
        return [query.limit for query in self.asked]

    @staticmethod
    def _matches(query: PartQuery, each: Part) -> bool:
        if query.sku:
            return any(offer.sku == query.sku for offer in each.offers)
        number = "".join(filter(str.isalnum, query.mpn)).lower()
        return number in "".join(filter(str.isalnum, each.mpn)).lower() and query.manufacturer in (
            "",
            each.manufacturer,
        )


@pytest.mark.parametrize("number", ["SN74S74N", "sn74s74n", "SN74 S74N", "SN-74S74N", "SN74_S74N"])
def test_part_with_the_list_s_number_is_found_at_one_part(number: str) -> None:
    service = Service(part("SN74S74N"))
    assert service.decided(Choice(number)).text == "found"
    assert service.limits == [1]


@pytest.mark.parametrize("number", ["SN74S74", "SN74S", "74S74N"])
def test_part_with_another_number_is_never_plainly_found(number: str) -> None:
    decision = Service(part("SN74S74N")).decided(Choice(number))
    assert decision[:2] == ("found as", f"found as SN74S74N of {TI}")


@pytest.mark.parametrize("number", ["15SMC68CA", "15smc68ca", "15-SMC 68CA"])
def test_two_parts_that_match_as_well_are_ambiguous(number: str) -> None:
    service = Service(part("1.5SMC68CA", "Littelfuse"), part("1.5SMC6.8CA", "Littelfuse"))
    decision = service.decided(Choice(number, "Littelfuse"))
    assert decision.outcome == "ambiguous"
    assert "1.5SMC68CA of Littelfuse; 1.5SMC6.8CA of Littelfuse" in decision.text
    assert service.limits == [1, CANDIDATES]


@pytest.mark.parametrize("number", ["1.5SMC6.8CA", "1.5smc6.8ca", "1.5SMC6.8ca"])
def test_part_that_is_spelled_as_in_the_list_is_found_among_them(number: str) -> None:
    decision = Service(part("1.5SMC68CA"), part("1.5SMC6.8CA")).decided(Choice(number))
    assert (decision.outcome, decision.name) == ("found", ("1.5SMC6.8CA", TI))


def test_several_makers_are_ambiguous_and_named() -> None:
    service = Service(part("NE555P"), part("NE555P", ST), part("NE555PE4"))
    assert service.decided(Choice("NE555P")).text == (
        f"ambiguous: NE555P of {TI}; NE555P of {ST}; these values are of the first"
    )
    assert service.decided(Choice("NE555P", ST)).outcome == "found"


def test_candidates_beyond_those_that_are_looked_at_are_counted() -> None:
    decision = Service(*(part(f"NE555P{n}") for n in range(9))).decided(Choice("NE555P"))
    assert decision.outcome == "ambiguous"
    assert " and 4 more" in decision.text


@pytest.mark.parametrize("maker", ["Various", "Murata", "Multiple sources"])
def test_who_makes_it_is_said_where_the_maker_is_wrong(maker: str) -> None:
    service = Service(part("NE555P"))
    decision = service.decided(Choice("NE555P", maker))
    assert decision[:2] == ("not found", f"not found: no part of {maker}; {TI} makes it")
    assert [query.manufacturer for query in service.asked] == [maker, ""]


@pytest.mark.parametrize(
    "listed, maker",
    [
        *(("Analog Devices", "Maxim Integrated"), ("ANALOG DEVICES INC", "Maxim"), ("Maxim", "Analog Devices")),
        *(("onsemi", "Fairchild"), ("Freescale Semi.", "NXP Semiconductors"), ("Atmel", "Microchip Technology")),
    ],
)
def test_part_of_a_maker_that_has_become_one_with_the_list_s_is_found_with_a_doubt(listed: str, maker: str) -> None:
    decision = Service(part("MAX3232ESE+", maker)).decided(Choice("MAX3232ESE+", listed))
    assert decision[:2] == ("found as", f"found as MAX3232ESE+ of {maker}")
    assert decision.name == ("MAX3232ESE+", maker)
    other = Service(part("MAX3232ESE", maker)).decided(Choice("MAX3232ESE+", listed))
    assert other.outcome == "not found"  # another number of another maker is too much of a doubt


def test_who_makes_it_where_several_do_and_where_nobody_does() -> None:
    several = Service(part("NE555P"), part("NE555P", ST)).decided(Choice("NE555P", "Murata"))
    assert several.text == f"not found: no part of Murata; {TI} and others make it"
    other = Service(part("NE555PE4")).decided(Choice("NE555P", "Murata"))
    assert other.text == f"not found: no part of Murata; {TI} makes NE555PE4"
    assert Service().decided(Choice("NE555P", "Murata")).text == "not found: no part has this number"
    assert Service().decided(Choice("NE555P")).text == "not found"


@pytest.mark.parametrize("number", ["296-1395-5-ND", "595-SN74S74N", "C25804", "34C1234"])
def test_number_of_a_distributor_is_looked_up_as_such(number: str) -> None:
    service = Service(part("SN74S74N", sku=number))
    assert service.decided(Choice(number)).text == "found: as distributor's number"
    assert service.decided(Choice("", sku=number)).text == "found"


FIRST, SECOND = Choice("A1", TI), Choice("B2", ST)


def test_alternative_is_tried_if_the_first_is_not_found_or_has_no_stock() -> None:
    both = Service(part("A1"), part("B2", ST))
    assert (both.decided(FIRST, SECOND).name, len(both.asked)) == (("A1", TI), 1)
    missing = Service(part("B2", ST)).decided(FIRST, SECOND)
    assert missing[:2] == ("found", f"found: alternative B2 of {ST}, as A1 is not found")
    empty = Service(part("A1", stock=0), part("B2", ST)).decided(FIRST, SECOND)
    assert empty[:2] == ("found", f"found: alternative B2 of {ST}, as A1 has no stock")
    third = Service(part("C3")).decided(FIRST, SECOND, Choice("C3"))
    assert third.text == f"found: alternative C3 of {TI}, as A1 is not found, B2 is not found"


def test_first_is_taken_where_no_alternative_has_stock() -> None:
    assert Service(part("A1", stock=0), part("B2", ST, stock=0)).decided(FIRST, SECOND).text == "found"
    decision = Service(part("B2", ST, stock=0)).decided(FIRST, SECOND)
    assert decision.text == f"found: alternative B2 of {ST}, as A1 is not found"


def test_error_of_the_service_is_that_of_the_line() -> None:
    decision = Service(error="too many requests").decided(Choice("A1"), SECOND)
    assert decision[:2] == ("failed", "failed: too many requests")
