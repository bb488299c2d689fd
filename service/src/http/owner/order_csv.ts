import type { OrderView } from '../../engine/desks/desk.ts'

type Column = readonly [name: string, read: (order: OrderView) => string | number | null | undefined]

const field = (name: keyof OrderView & string): Column => [
  name,
  (order) => order[name] as string | number | null,
]
const time = (name: 'created_at' | 'updated_at' | 'expires_at' | 'completed_at'): Column => [
  name,
  (order) => {
    const atMs = order[name]
    return atMs === null ? null : new Date(atMs).toISOString()
  },
]

/** As in the interface, so that what is known of one is known of the other. */
const columns: readonly Column[] = [
  field('order_id'),
  field('status'),
  time('created_at'),
  time('updated_at'),
  time('expires_at'),
  time('completed_at'),
  field('rate_type'),
  field('deposit_currency'),
  field('deposit_network'),
  field('deposit_amount'),
  field('deposit_received'),
  field('deposit_address'),
  field('deposit_tag'),
  field('deposit_tx_hash'),
  field('receive_currency'),
  field('receive_network'),
  field('receive_amount'),
  field('receive_final_amount'),
  field('rate'),
  field('fee'),
  field('network_fee'),
  field('destination'),
  field('destination_tag'),
  field('withdraw_tx_hash'),
  field('refund_address'),
  ['refund_amount', ({ refund }) => refund?.amount],
  ['refund_tx_hash', ({ refund }) => refund?.tx_hash],
  ['emergency_reasons', ({ emergency }) => emergency?.reasons.join(' ')],
  field('callback_url'),
  // Behind those that were there before, which somebody may read by their places.
  field('deposit_account'),
]

/** RFC 4180, in UTF-8: the line that names the columns, for before the others. */
export const csvHead = csvLine(columns.map(([name]) => name))

/** A line for each order. */
export function csvLines(orders: readonly OrderView[]): string {
  return orders.map((order) => csvLine(columns.map(([, read]) => csvCell(read(order) ?? '')))).join('')
}

function csvLine(cells: readonly string[]): string {
  return `${cells.join(',')}\r\n`
}

/**
 * What a spreadsheet would take for a formula gets an apostrophe in front, also behind spaces, and is quoted:
 * https://owasp.org/www-community/attacks/CSV_Injection. A destination tag is anybody's words.
 */
export function csvCell(value: string | number): string {
  const text = String(value)
  // The wide forms of the signs (＝＋－＠) are formulas to some programs, too.
  const isFormula = /^[\s\p{Cc}\p{Cf}]*[=+\-@\t\r\n＝＋－＠]/u.test(text) || /^[\t\r\n]/.test(text)
  const plain = isFormula ? `'${text}` : text
  return isFormula || /[",;\r\n]|^\s|\s$/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain
}
