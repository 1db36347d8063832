"""What depends on what, and circles."""

from proxy.tools.sheet.formulas.dependencies import FormulaDependencies, FormulaLinks
from proxy.tools.sheet.formulas.references import CellArea, CellPosition, WorkbookNames

NAMES = WorkbookNames(["S", "T"], {})


def at(address: str, sheet: str = "S") -> CellPosition:
    """The cell of an address."""
    cell = area(address, sheet).one_cell
    assert cell
    return cell


def area(text: str, sheet: str = "S") -> CellArea:
    """The area of a reference."""
    found = NAMES.resolve(text, CellPosition(sheet, 1, 1))
    assert found
    return found


def dependencies(formulas: dict[str, str], of_all: str = "") -> FormulaDependencies:
    """Dependencies of formulas by address, with what each reads, separated by spaces."""
    links = {
        at(cell): FormulaLinks(tuple(map(area, reads.split())), area(cell), cell == of_all)
        for cell, reads in formulas.items()
    }
    return FormulaDependencies(links)


def test_dependents_are_found_over_chains_areas_and_sheets() -> None:
    known = dependencies({"B1": "A1", "C1": "B1 D9", "D1": "B:C", "E1": "T!D1", "T!D1": "D1", "F1": "A2"})
    dirty = known.dependents([at("B1")])
    assert dirty == {at("B1"), at("C1"), at("D1"), at("E1"), at("T!D1")}


def test_nothing_depends_on_nothing() -> None:
    assert dependencies({"B1": "A1"}, of_all="B1").dependents([]) == set()


def test_a_formula_that_reads_anything_depends_on_everything() -> None:
    assert at("Z9") in dependencies({"B1": "A1", "Z9": ""}, of_all="Z9").dependents([at("B1")])


def test_cells_that_an_array_formula_fills_are_followed() -> None:
    links = {
        at("A1"): FormulaLinks((), area("A1:A500")),
        at("B1"): FormulaLinks((area("A400"),), area("B1")),
        at("C1"): FormulaLinks((area("A500:A9000"),), area("C1")),
        at("D1"): FormulaLinks((area("A501"),), area("D1")),
    }
    assert FormulaDependencies(links).dependents([at("A1")]) == {at("A1"), at("B1"), at("C1")}


def test_a_long_chain_is_no_recursion() -> None:
    chain = {f"A{row}": f"A{row - 1}" for row in range(2, 3_000)}
    known = dependencies(chain)
    dirty = known.dependents([at("A2")])
    assert len(dirty) == len(chain)
    assert known.circle([at("A2999")], dirty) == ()


def test_circles_are_named_in_their_order() -> None:
    known = dependencies({"A1": "C1", "B1": "A1", "C1": "B1", "D1": "A1", "E1": ""})
    dirty = known.dependents([at("A1"), at("E1")])
    assert set(known.circle([at("E1"), at("D1")], dirty)) == {at("A1"), at("B1"), at("C1")}
    assert known.circle([at("E1")], dirty) == ()


def test_a_formula_that_reads_itself_is_a_circle() -> None:
    known = dependencies({"A1": "A:A"})
    assert known.circle([at("A1")], [at("A1")]) == [at("A1")]
