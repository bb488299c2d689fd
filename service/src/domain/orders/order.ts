export const orderStatuses = [
  'NEW',
  'PENDING',
  'EXCHANGE',
  'WITHDRAW',
  'DONE',
  'EXPIRED',
  'EMERGENCY',
  'REFUND',
  'REFUNDED',
] as const

export type OrderStatus = (typeof orderStatuses)[number]
