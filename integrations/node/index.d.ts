export class KafkaliteError extends Error {}

/** A rule by the names of the HTTP API: an api, what it is about, one action, when it fires. */
export interface Rule {
  api: string | string[];
  [name: string]: unknown;
}

export interface Timeout {
  timeoutMs?: number;
}

export interface Fault {
  readonly id: string;
  readonly rule: string;
  /** How often it had fired when it was last asked for. */
  readonly lastHits: number;
  hits(): Promise<number>;
  waitForHits(hits?: number, options?: Timeout): Promise<void>;
  remove(): Promise<void>;
}

export interface Faults {
  add(rule: Rule): Promise<Fault>;
  list(): Promise<Fault[]>;
  clear(options?: { strict?: boolean }): Promise<void>;
}

export interface Clock {
  /** Milliseconds since the epoch, as the broker has them. */
  now(): Promise<number>;
  advance(time: { days?: number; hours?: number; minutes?: number; seconds?: number }): Promise<void>;
  freeze(): Promise<void>;
  resume(): Promise<void>;
  set(date: Date): Promise<void>;
  rate(rate: number): Promise<void>;
  reset(): Promise<void>;
}

export class Kafkalite {
  static start(options?: { settings?: Record<string, string | number | boolean>; command?: string }): Promise<Kafkalite>;
  static attach(http: string): Promise<Kafkalite>;
  readonly bootstrapServers: string;
  readonly brokers: string[];
  readonly http: string;
  readonly faults: Faults;
  readonly clock: Clock;
  stop(): Promise<void>;
  reset(): Promise<void>;
  createTopic(name: string, options?: { partitions?: number; settings?: Record<string, string> }): Promise<void>;
  topics(): Promise<string[]>;
  recordCount(topic: string): Promise<number>;
  waitForGroup(group: string, members?: number, options?: Timeout): Promise<void>;
  waitForCommits(group: string, topic: string, options?: Timeout): Promise<void>;
  lag(group: string, topic: string): Promise<number>;
}
