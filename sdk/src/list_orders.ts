import type { ListOrdersRequest, Order, OrderPage } from './types.ts'

/** The most that a page has. */
const PAGE_SIZE = 100

/** Goes from page to page. An order that is there when the first page is fetched comes once, whatever is created meanwhile. */
export async function* listOrders(
  fetchPage: (query: Readonly<Record<string, unknown>>) => Promise<OrderPage>,
  request: ListOrdersRequest,
): AsyncGenerator<Order, void, undefined> {
  const filter = {
    status: request.status?.join(','),
    created_after: timeText(request.created_after),
    created_before: timeText(request.created_before),
    updated_after: timeText(request.updated_after),
  }
  for (let cursor: string | undefined; ; ) {
    const page = await fetchPage({ ...filter, limit: PAGE_SIZE, cursor })
    yield* page.orders
    if (page.next_cursor === null) return
    cursor = page.next_cursor
  }
}

function timeText(time: string | Date | undefined): string | undefined {
  return time instanceof Date ? time.toISOString() : time
}
