/** https://github.com/AntelopeIO/leap/blob/main/libraries/chain/include/eosio/chain/exceptions.hpp */
const EXCEPTIONS = {
  unspecified: [0, 'unspecified', 500],
  transaction_exception: [3_040_000, 'Transaction exception', 500],
  tx_no_action: [3_040_002, 'Transaction should have at least one normal action', 500],
  tx_no_auths: [3_040_003, 'Transaction should have at least one required authority', 500],
  expired_tx_exception: [3_040_005, 'Expired Transaction', 500],
  tx_exp_too_far_exception: [3_040_006, 'Transaction Expiration Too Far', 500],
  invalid_ref_block_exception: [3_040_007, 'Invalid Reference Block', 500],
  tx_duplicate: [3_040_008, 'Duplicate transaction', 409],
  packed_transaction_type_exception: [3_010_010, 'Invalid packed transaction', 500],
  name_type_exception: [3_010_001, 'Invalid name', 500],
  action_validate_exception: [3_050_000, 'Action validate exception', 500],
  account_name_exists_exception: [3_050_001, 'Account name already exists', 500],
  eosio_assert_message_exception: [3_050_003, 'eosio_assert_message assertion failure', 500],
  eosio_assert_code_exception: [3_050_004, 'eosio_assert_code assertion failure', 500],
  tx_net_usage_exceeded: [
    3_080_002,
    'Transaction exceeded the current network usage limit imposed on the transaction',
    500,
  ],
  tx_cpu_usage_exceeded: [
    3_080_004,
    'Transaction exceeded the current CPU usage limit imposed on the transaction',
    500,
  ],
  ram_usage_exceeded: [3_080_001, 'Account using more than allotted RAM usage', 500],
  deadline_exception: [3_080_006, 'Transaction took too long', 500],
  tx_irrelevant_sig: [3_090_002, 'Irrelevant signature included', 500],
  unsatisfied_authorization: [
    3_090_003,
    'Provided keys, permissions, and delays do not satisfy declared authorizations',
    401,
  ],
  missing_auth_exception: [3_090_004, 'Missing required authority', 500],
  unknown_block_exception: [3_100_002, 'Unknown block', 400],
} as const satisfies Record<string, readonly [code: number, what: string, status: number]>

export type RefusalName = keyof typeof EXCEPTIONS

const STATUS_TEXT: Readonly<Record<number, string>> = {
  400: 'Unknown Block',
  401: 'UnAuthorized',
  409: 'Conflict',
  500: 'Internal Service Error',
}

export class Refusal extends Error {
  readonly refusal: RefusalName
  constructor(refusal: RefusalName, message: string) {
    super(message)
    this.refusal = refusal
  }

  get status(): number {
    return EXCEPTIONS[this.refusal][2]
  }

  get code(): number {
    return EXCEPTIONS[this.refusal][0]
  }

  get what(): string {
    return EXCEPTIONS[this.refusal][1]
  }
}

export function refusalNamed(name: string): Refusal {
  const known = Object.hasOwn(EXCEPTIONS, name)
  return known
    ? new Refusal(name as RefusalName, 'as a test asked for')
    : new Refusal('transaction_exception', name)
}

/** As a failed `check` of a contract is told. */
export function assertion(message: string): Refusal {
  return new Refusal('eosio_assert_message_exception', `assertion failure with message: ${message}`)
}

/** https://docs.antelope.io/docs/latest/api-reference: every error has this form. */
export function errorBody(refusal: Refusal): object {
  const { code, what, status, message } = refusal
  const name = refusal.refusal === 'unspecified' ? 'exception' : refusal.refusal
  const details = [{ message, file: 'http_plugin.cpp', line_number: 0, method: 'handle_exception' }]
  return { code: status, message: STATUS_TEXT[status], error: { code, name, what, details } }
}

/** How `send_transaction2` tells a failure inside an answer that says 202. */
export function exceptionJson({ refusal, code, what, message }: Refusal): object {
  const context = { level: 'error', file: 'apply_context.cpp', line: 0, method: 'exec_one' }
  return { code, name: refusal, message: what, stack: [{ context, format: message, data: {} }] }
}
