"""A program with Spring Boot and Spring for Apache Kafka, from Maven Central."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compat_tests.cache import cached_dir, digest_of
from compat_tests.maven import copy_jars
from compat_tests.toolchains import find_program, run_build

if TYPE_CHECKING:
    from pathlib import Path

SPRING_BOOT = "3.5.0"

_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kafkalite</groupId><artifactId>spring</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencyManagement>
    <dependencies>
      <dependency>
        <groupId>org.springframework.boot</groupId><artifactId>spring-boot-dependencies</artifactId>
        <version>{SPRING_BOOT}</version><type>pom</type><scope>import</scope>
      </dependency>
    </dependencies>
  </dependencyManagement>
  <dependencies>
    <dependency>
      <groupId>org.springframework.boot</groupId><artifactId>spring-boot-starter</artifactId>
    </dependency>
    <dependency>
      <groupId>org.springframework.kafka</groupId><artifactId>spring-kafka</artifactId>
    </dependency>
  </dependencies>
</project>
"""

#: It sends a record by the template that Spring makes of application.properties.
_PROGRAM = """
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.kafka.core.KafkaTemplate;

@EnableAutoConfiguration
public class Main {
    public static void main(String[] arguments) throws Exception {
        try (var context = SpringApplication.run(Main.class)) {
            context.getBean(KafkaTemplate.class).send(arguments[0], arguments[1]).get();
        }
    }
}
"""


def spring_command() -> list[str]:
    """Return the command to which topic and value are added; fetches and compiles at first."""

    def build(folder: Path) -> None:
        (folder / "Main.java").write_text(_PROGRAM)
        libs = copy_jars(_POM, folder)
        javac = [find_program("javac"), "-parameters", "-d", str(folder), "-cp", f"{libs}/*"]
        run_build([*javac, str(folder / "Main.java")])

    home = cached_dir(f"spring/{SPRING_BOOT}-{digest_of(_POM, _PROGRAM)}", build, lock="maven")
    options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"]
    return [find_program("java"), *options, "-cp", f"{home}:{home}/libs/*", "Main"]
