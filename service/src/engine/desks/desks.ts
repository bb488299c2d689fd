import type { DeskWorld } from '../world.ts'
import type { Desk } from './desk.ts'
import { emergencyDesk } from './emergency_desk.ts'
import { orderDesk } from './order_desk.ts'
import { paymentDesk } from './payment_desk.ts'
import { rateDesk } from './rate_desk.ts'

/** Everything a client can ask for, on the real world. */
export function openDesk(world: DeskWorld): Desk {
  return { ...rateDesk(world), ...orderDesk(world), ...paymentDesk(world), ...emergencyDesk(world) }
}
