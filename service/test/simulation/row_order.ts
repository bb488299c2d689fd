/**
 * Where a statement leaves the order of its rows open, it depends on where they lie on the disk, and so on what happened
 * long before. Here it depends on the rows and on `shuffle`: what is open is tried in any order. The order within an array
 * is settled by the statement that makes it.
 */
export function inSettledOrder<Row extends object>(
  text: string,
  rows: readonly Row[],
  shuffle: (rows: Row[]) => Row[],
): Row[] {
  const columns = /\bORDER BY ([^()]*)$/.exec(text)?.[1]
  // Several columns leave nothing open.
  if (columns?.includes(',')) return [...rows]
  const shuffled = shuffle(sortedByText(rows))
  const column = (/^(?:\w+\.)?(\w+)/.exec(columns ?? '')?.[1] ?? '') as keyof Row
  if (rows[0] === undefined || !(column in rows[0])) return shuffled
  const ranks = new Map<string, number>()
  for (const row of rows) ranks.set(String(row[column]), ranks.get(String(row[column])) ?? ranks.size)
  const rankOf = (row: Row) => ranks.get(String(row[column])) ?? 0
  return shuffled.toSorted((left, right) => rankOf(left) - rankOf(right))
}

function sortedByText<Row extends object>(rows: readonly Row[]): Row[] {
  const texts = new Map(rows.map((row) => [row, JSON.stringify(row, bigintAsText)]))
  const textOf = (row: Row) => texts.get(row) ?? ''
  return rows.toSorted((left, right) => (textOf(left) < textOf(right) ? -1 : 1))
}

function bigintAsText(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value
}
