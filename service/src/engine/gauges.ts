// temporary, replaced by its author
export function registerGauges(_w: unknown, _m: unknown): void {}
