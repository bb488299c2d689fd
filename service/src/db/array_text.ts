import { assert } from '../domain/assert.ts'

/**
 * The text of a PostgreSQL array of one field of many items. Only for ids and numbers, in which nothing needs quotes:
 * pg would look for that in every item, which costs more than the statement.
 */
export function arrayText<Item>(
  items: readonly Item[],
  field: (item: Item) => string | number | bigint,
): string {
  const text = items.map(field).join(',')
  assert(/^[\w:.,-]*$/.test(text), 'ids and numbers need no quotes in an array')
  return `{${text}}`
}
